package orchestrator

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/store"
)

// occurrence is one of a schedule, which gets a run.
type occurrence struct {
	name string // the schedule's
	store.Occurrence
}

// startedAs returns the occurrence as it is stored with its run; nil is of none.
func (o *occurrence) startedAs(id string) *store.Occurrence {
	if o == nil {
		return nil
	}
	row := o.Occurrence
	row.Outcome, row.Run, row.Reason = string(api.OccurrenceStarted), id, ""
	return &row
}

// occur has a run for a planned time, or what the schedule says of a run of it that goes on.
func (s *Service) occur(ctx context.Context, p *planned, at time.Time) error {
	going := s.timetable.runs(p.name)
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
func (s *Service) supplant(ctx context.Context, p *planned, at time.Time, going []string) error {
	for len(p.waiting) > 0 {
		if err := s.endWaiting(ctx, p, api.OccurrenceSkipped, "a later occurrence took its place"); err != nil {
			return err
		}
	}
	if err := s.remember(ctx, p, []time.Time{at}, api.OccurrenceWaiting, ""); err != nil {
		return err
	}
	for _, id := range going {
		_, _ = s.Cancel(ctx, id, "the next occurrence of its schedule was due") // it may have ended
	}
	return nil
}

// endWaiting gives the first occurrence that waits an end without a run.
func (s *Service) endWaiting(ctx context.Context, p *planned, outcome api.OccurrenceOutcome, reason string) error {
	o := p.waiting[0]
	o.Outcome, o.Reason = string(outcome), reason
	if err := s.store.SaveOccurrence(ctx, o); err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	p.waiting = p.waiting[1:]
	s.metrics.Occurred(outcome, 1)
	return nil
}

// goOnWaiting begins the occurrences of a schedule that wait, one after the other.
func (s *Service) goOnWaiting(ctx context.Context, p *planned) error {
	for len(p.waiting) > 0 && !p.gone && len(s.timetable.runs(p.name)) == 0 {
		if err := s.beginRun(ctx, p, p.waiting[0]); err != nil {
			return err
		}
		p.waiting = p.waiting[1:]
	}
	return nil
}

// beginRun starts the run of an occurrence, or stores why it has none. After an error nothing is
// stored: it is for the next look, or for the next process.
func (s *Service) beginRun(ctx context.Context, p *planned, o store.Occurrence) error {
	_, err := s.startOccurrence(ctx, p, o)
	var happened *store.Happened
	switch {
	case err == nil:
		s.began(p, o)
		return nil
	case errors.As(err, &happened):
		_, err := s.store.AddOccurrences(ctx, p.seq, o.Planned)
		p.lookedAt(o.Planned, 0)
		return goneIsFine(p, err)
	case ctx.Err() != nil || s.shuttingDown():
		return err
	}
	return s.refuse(ctx, p, o, err)
}

// began notes that an occurrence has its run.
func (s *Service) began(p *planned, o store.Occurrence) {
	if o.Seq == 0 && !o.Manual {
		p.lookedAt(o.Planned, 1)
	}
	s.metrics.Occurred(api.OccurrenceStarted, 1)
	if !o.Manual {
		s.metrics.BegunLate(time.Duration(o.LateMS) * time.Millisecond)
	}
}

// refuse stores why an occurrence has no run.
func (s *Service) refuse(ctx context.Context, p *planned, o store.Occurrence, why error) error {
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
	s.metrics.Occurred(api.OccurrenceRefused, 1)
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

// startOccurrence has the run of an occurrence accepted. The two are stored in one transaction.
func (s *Service) startOccurrence(ctx context.Context, p *planned, o store.Occurrence) (record api.Record, err error) {
	if err := s.admits(ctx); err != nil {
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
	u, err := s.units.Get(ctx, row.Unit)
	if err != nil {
		return record, err
	}
	if ClientOf(ctx) == "" {
		ctx = WithClient(ctx, stored.by)
	}
	asked, err := s.prepare(ctx, u, stored.submission(p.plan, files))
	if err != nil {
		return record, err
	}
	asked.metadata, asked.occurrence = stored.spec.Metadata, &occurrence{p.name, o}
	j, err := s.admit(ctx, asked)
	if err != nil {
		return record, err
	}
	record = j.Record
	s.timetable.join(p.name, j.ID)
	go j.drive()
	return record, nil
}
