package schedules

import (
	"context"
	"errors"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Delete removes a schedule with its history and its files. Runs of it that go on do so.
func (s *Scheduler) Delete(ctx context.Context, name string) error {
	return s.change(ctx, name, func(p *planned, row store.Schedule) error {
		if err := s.store.Schedules.Delete(audited(ctx, row, "remove"), row.Name); err != nil {
			return err
		}
		if p != nil {
			p.gone, p.waiting = true, nil
			s.table.remove(p)
		}
		s.files.drop(row.Files)
		s.logger.Info("schedule removed", "schedule", row.Seq)
		return nil
	})
}

// Pause pauses a schedule, or has it go on. What is due while it is paused has no
// occurrence, and what waits is cancelled.
func (s *Scheduler) Pause(ctx context.Context, name string, paused bool) (api.Schedule, error) {
	err := s.change(ctx, name, func(p *planned, row store.Schedule) error {
		if row.Paused == paused {
			return nil
		}
		now := s.clock.Now()
		cancelled := store.Occurrence{Outcome: string(api.OccurrenceCancelled), Reason: "the schedule was paused"}
		verb := "resume"
		if paused {
			verb = "pause"
		}
		if err := s.store.Schedules.Pause(audited(ctx, row, verb), row.Name, paused, now, cancelled); err != nil {
			return err
		}
		if p != nil {
			s.figures.became(api.OccurrenceCancelled, len(p.waiting))
			p.paused, p.until, p.waiting = paused, now, nil
			s.table.evaluateAt(p, p.nextLook())
		}
		s.logger.Info("schedule paused or resumed", "schedule", row.Seq, "paused", paused)
		return nil
	})
	if err != nil {
		return api.Schedule{}, err
	}
	return s.Get(ctx, name)
}

// Give has the schedules that were made with a token, and of which the client of ctx may know, belong to another one.
// It returns how many. Where that isn't one of a schedule's team, or may not run its unit, nothing changes, and the
// error is a Conflict fault.
func (s *Scheduler) Give(ctx context.Context, from string, to access.Grant) (n int, err error) {
	given, err := s.madeWith(ctx, from)
	if err != nil {
		return 0, err
	}
	for _, row := range given {
		if err := s.takes(ctx, to, row); err != nil {
			return 0, err
		}
	}
	for _, row := range given {
		err := s.change(ctx, row.Name, func(p *planned, row store.Schedule) error {
			return s.give(ctx, p, row, to.Name)
		})
		if fault.Is(err, fault.NotFound) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// madeWith lists the schedules that were made with a token.
func (s *Scheduler) madeWith(ctx context.Context, token string) (made []store.Schedule, err error) {
	owned := store.OwnedFor(ctx)
	owned.By = token
	for before := int64(0); ; {
		rows, err := s.store.Schedules.List(ctx, owned, before, 0)
		if err != nil || len(rows) == 0 {
			return made, err
		}
		made, before = append(made, rows...), s.store.Schedules.Behind(rows[len(rows)-1])
	}
}

// takes returns a Conflict fault if the holder of a grant couldn't have made a schedule.
func (s *Scheduler) takes(ctx context.Context, to access.Grant, row store.Schedule) error {
	ctx = access.WithGrant(ctx, to)
	_, err := to.In(row.Team)
	if err == nil && access.CheckUnit(ctx, row.Unit) == nil && to.Allows(access.Run) == nil {
		return nil
	}
	return fault.Wrap(fault.Conflict, err, "the token %q can't have the schedule %q of the team %s", to.Name, row.Name,
		row.Team).WithHint("name one that may run its unit %q in that team", row.Unit)
}

// give has a schedule belong to a token. What is stored of its runs stays.
func (s *Scheduler) give(ctx context.Context, p *planned, row store.Schedule, to string) error {
	stored, err := readSchedule(row)
	if err != nil {
		return err
	}
	again, err := rowOf(row.Name, access.Owner{Team: row.Team, By: to}, stored.spec, stored.files)
	if err != nil {
		return err
	}
	row.Spec, row.MadeBy = again.Spec, to
	if p != nil && p.until.After(row.Until) {
		row.Until = p.until // it was looked at meanwhile
	}
	if _, err := s.store.Schedules.Put(ctx, row); err != nil {
		return err
	}
	if p != nil {
		s.table.serve(p, row.Unit, access.Owner{Team: row.Team, By: to})
	}
	s.logger.Info("schedule given", "schedule", row.Seq)
	return nil
}

// change calls do while nothing else happens to a schedule. It is nil for one that can't be
// read.
func (s *Scheduler) change(ctx context.Context, name string, do func(*planned, store.Schedule) error) error {
	if err := s.gate.Admits(ctx); err != nil {
		return err
	}
	s.table.changing.Lock()
	defer s.table.changing.Unlock()
	row, err := s.known(ctx, name)
	if err != nil {
		return err
	}
	p := s.table.find(row.Name)
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if row, err = s.store.Schedules.Get(ctx, row.Name); err != nil { // as it is now that nothing else happens to it
		return err
	}
	return do(p, row)
}

// Begin starts a run of a schedule now, whatever its times, its state and its other runs
// are. It is an occurrence of its history, and doesn't count for Count.
func (s *Scheduler) Begin(ctx context.Context, name string) (api.Record, error) {
	if err := s.gate.Admits(ctx); err != nil {
		return api.Record{}, err
	}
	row, err := s.known(ctx, name)
	if err != nil {
		return api.Record{}, err
	}
	p := s.table.find(row.Name)
	if p == nil {
		return api.Record{}, fault.New(fault.Conflict, "the schedule can't be kept").
			WithHint("look at its problem, and make it again")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.clock.Now()
	o := store.Occurrence{Schedule: p.seq, Planned: now, Fired: now, Manual: true}
	record, err := s.keeper.start(audited(ctx, row, "start"), p, o)
	var happened *store.Happened
	if errors.As(err, &happened) {
		return record, fault.Wrap(fault.Conflict, err, "the schedule has an occurrence of this moment, or was removed").
			WithHint("try again")
	}
	if err == nil {
		s.keeper.began(p, o)
	}
	return record, err
}
