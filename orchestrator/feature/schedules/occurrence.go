package schedules

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// occur has a run for a planned time, or what the schedule says of a run of it that goes on.
func (s *Scheduler) occur(ctx context.Context, p *planned, at time.Time) error {
	going := s.table.runs(p.name)
	if len(going) == 0 && len(p.waiting) == 0 || p.plan.Overlap == api.OverlapAllow {
		return s.beginRun(ctx, p, s.occurrenceOf(p, at))
	}
	switch p.plan.Overlap {
	case api.OverlapQueue:
		if len(p.waiting) == 0 {
			return s.remember(ctx, p, []time.Time{at}, api.OccurrenceWaiting, "")
		}
		return s.remember(ctx, p, []time.Time{at}, api.OccurrenceSkipped, "another occurrence waits already")
	case api.OverlapCancel:
		return s.supplant(ctx, p, at, going)
	}
	return s.remember(ctx, p, []time.Time{at}, api.OccurrenceSkipped, "a run of the schedule went on")
}

// supplant cancels the runs of a schedule for an occurrence, which begins after their ends.
func (s *Scheduler) supplant(ctx context.Context, p *planned, at time.Time, going []string) error {
	for len(p.waiting) > 0 {
		if err := s.endWaiting(ctx, p, api.OccurrenceSkipped, "a later occurrence took its place"); err != nil {
			return err
		}
	}
	if err := s.remember(ctx, p, []time.Time{at}, api.OccurrenceWaiting, ""); err != nil {
		return err
	}
	for _, id := range going {
		_, _ = s.host.Cancel(ctx, id, "the next occurrence of its schedule was due") // it may have ended
	}
	return nil
}

// endWaiting gives the first occurrence that waits an end without a run.
func (s *Scheduler) endWaiting(ctx context.Context, p *planned, outcome api.OccurrenceOutcome, reason string) error {
	o := p.waiting[0]
	o.Outcome, o.Reason = string(outcome), reason
	if err := s.store.SaveOccurrence(ctx, o); err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	p.waiting = p.waiting[1:]
	s.opts.Became(outcome, 1)
	return nil
}

// goOnWaiting begins the occurrences of a schedule that wait, one after the other.
func (s *Scheduler) goOnWaiting(ctx context.Context, p *planned) error {
	for len(p.waiting) > 0 && !p.gone && len(s.table.runs(p.name)) == 0 {
		if err := s.beginRun(ctx, p, p.waiting[0]); err != nil {
			return err
		}
		p.waiting = p.waiting[1:]
	}
	return nil
}

// beginRun starts the run of an occurrence, or stores why it has none. After an error nothing is
// stored: it is for the next look, or for the next process.
func (s *Scheduler) beginRun(ctx context.Context, p *planned, o store.Occurrence) error {
	_, err := s.start(ctx, p, o)
	var happened *store.Happened
	switch {
	case err == nil:
		s.began(p, o)
		return nil
	case errors.As(err, &happened):
		_, err := s.store.AddOccurrences(ctx, p.seq, o.Planned)
		p.lookedAt(o.Planned, 0)
		return goneIsFine(p, err)
	case ctx.Err() != nil || s.host.ShuttingDown():
		return err
	}
	return s.refuse(ctx, p, o, err)
}

// began notes that an occurrence has its run.
func (s *Scheduler) began(p *planned, o store.Occurrence) {
	if o.Seq == 0 && !o.Manual {
		p.lookedAt(o.Planned, 1)
	}
	s.opts.Became(api.OccurrenceStarted, 1)
	if !o.Manual {
		s.opts.Late(time.Duration(o.LateMS) * time.Millisecond)
	}
}

// refuse stores why an occurrence has no run.
func (s *Scheduler) refuse(ctx context.Context, p *planned, o store.Occurrence, why error) error {
	o.Outcome, o.Reason = string(api.OccurrenceRefused), reasonOf(why)
	added, err := 0, error(nil)
	if o.Seq != 0 {
		if err = s.store.SaveOccurrence(ctx, o); fault.Is(err, fault.Conflict) {
			err = nil
		}
	} else {
		added, err = s.store.AddOccurrences(ctx, p.seq, o.Planned, o)
	}
	if err != nil {
		return goneIsFine(p, err)
	}
	if o.Seq == 0 {
		p.lookedAt(o.Planned, added)
	}
	s.opts.Became(api.OccurrenceRefused, 1)
	s.logger.Warn("occurrence refused", "schedule", p.seq, "kind", fault.KindOf(why).String())
	return nil
}

// maxReason bounds why an occurrence has no run, in bytes.
const maxReason = 1000

func reasonOf(err error) string {
	public := fault.Public(err)
	texts := []string{public.Msg}
	for _, f := range public.Findings[:min(3, len(public.Findings))] {
		texts = append(texts, f.String())
	}
	text := strings.Join(texts, "; ")
	if public.Hint != "" {
		text += " (" + public.Hint + ")"
	}
	return run.Bounded(text, maxReason)
}

// start has the host start the run of an occurrence.
func (s *Scheduler) start(ctx context.Context, p *planned, o store.Occurrence) (record api.Record, err error) {
	if err := s.host.Admits(ctx); err != nil {
		return record, err
	}
	row, err := s.store.Schedule(ctx, p.name)
	if err != nil {
		return record, err
	}
	stored, err := readSchedule(row)
	if err != nil {
		return record, err
	}
	files, err := s.spoolOf(stored)
	if err != nil {
		return record, err
	}
	defer func() { err = errors.Join(err, files.Remove()) }()
	if access.ClientOf(ctx) == "" {
		ctx = access.WithClient(ctx, stored.by)
	}
	return s.host.Start(ctx, stored.request(p.plan, files), o)
}
