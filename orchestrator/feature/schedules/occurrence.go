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

// fire has a run for a planned time, or what the schedule says of a run of it that goes on.
func (k keeper) fire(ctx context.Context, p *planned, at time.Time) error {
	going := k.table.runs(p.name)
	if len(going) == 0 && len(p.waiting) == 0 || p.plan.Overlap == api.OverlapAllow {
		return k.beginRun(ctx, p, k.occurrenceOf(p, at))
	}
	switch p.plan.Overlap {
	case api.OverlapQueue:
		if len(p.waiting) == 0 {
			return k.remember(ctx, p, []time.Time{at}, api.OccurrenceWaiting, "")
		}
		return k.remember(ctx, p, []time.Time{at}, api.OccurrenceSkipped, "another occurrence waits already")
	case api.OverlapCancel:
		return k.supplant(ctx, p, at, going)
	}
	return k.remember(ctx, p, []time.Time{at}, api.OccurrenceSkipped, "a run of the schedule went on")
}

// supplant cancels the runs of a schedule for an occurrence, which begins after their ends.
func (k keeper) supplant(ctx context.Context, p *planned, at time.Time, going []string) error {
	for len(p.waiting) > 0 {
		if err := k.endWaiting(ctx, p, api.OccurrenceSkipped, "a later occurrence took its place"); err != nil {
			return err
		}
	}
	if err := k.remember(ctx, p, []time.Time{at}, api.OccurrenceWaiting, ""); err != nil {
		return err
	}
	for _, id := range going {
		_, _ = k.cancel(ctx, id, "the next occurrence of its schedule was due") // it may have ended
	}
	return nil
}

// endWaiting gives the first occurrence that waits an end without a run.
func (k keeper) endWaiting(ctx context.Context, p *planned, outcome api.OccurrenceOutcome, reason string) error {
	o := p.waiting[0]
	o.Outcome, o.Reason = string(outcome), reason
	if err := k.store.Occurrences.Save(ctx, o); err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	p.waiting = p.waiting[1:]
	k.figures.became(outcome, 1)
	return nil
}

// goOnWaiting begins the occurrences of a schedule that wait, one after the other.
func (k keeper) goOnWaiting(ctx context.Context, p *planned) error {
	for len(p.waiting) > 0 && !p.gone && len(k.table.runs(p.name)) == 0 {
		if err := k.beginRun(ctx, p, p.waiting[0]); err != nil {
			return err
		}
		p.waiting = p.waiting[1:]
	}
	return nil
}

// beginRun starts the run of an occurrence, or stores why it has none. After an error nothing is
// stored: it is for the next look, or for the next process.
func (k keeper) beginRun(ctx context.Context, p *planned, o store.Occurrence) error {
	_, err := k.start(ctx, p, o)
	var happened *store.Happened
	switch {
	case err == nil:
		k.began(p, o)
		return nil
	case errors.As(err, &happened):
		_, err := k.store.Occurrences.Add(ctx, p.seq, o.Planned)
		p.lookedAt(o.Planned, 0)
		return ignoreDeleted(p, err)
	case ctx.Err() != nil || k.subs.ShuttingDown():
		return err
	}
	return k.refuse(ctx, p, o, err)
}

// began notes that an occurrence has its run.
func (k keeper) began(p *planned, o store.Occurrence) {
	if o.Seq == 0 && !o.Manual {
		p.lookedAt(o.Planned, 1)
	}
	k.figures.became(api.OccurrenceStarted, 1)
	if !o.Manual {
		k.figures.began(time.Duration(o.LateMS) * time.Millisecond)
	}
}

// refuse stores why an occurrence has no run.
func (k keeper) refuse(ctx context.Context, p *planned, o store.Occurrence, why error) error {
	o.Outcome, o.Reason = string(api.OccurrenceRefused), reasonOf(why)
	added, err := 0, error(nil)
	if o.Seq != 0 {
		if err = k.store.Occurrences.Save(ctx, o); fault.Is(err, fault.Conflict) {
			err = nil
		}
	} else {
		added, err = k.store.Occurrences.Add(ctx, p.seq, o.Planned, o)
	}
	if err != nil {
		return ignoreDeleted(p, err)
	}
	if o.Seq == 0 {
		p.lookedAt(o.Planned, added)
	}
	k.figures.became(api.OccurrenceRefused, 1)
	k.logger.Warn("occurrence refused", "schedule", p.seq, "kind", fault.KindOf(why).String())
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

// start starts the run of an occurrence.
func (k keeper) start(ctx context.Context, p *planned, o store.Occurrence) (record api.Record, err error) {
	row, err := k.store.Schedules.Get(ctx, p.name)
	if err != nil {
		return record, err
	}
	stored, err := readSchedule(row)
	if err != nil {
		return record, err
	}
	files, err := k.files.link(stored.row.Files, stored.files, k.subs)
	if err != nil {
		return record, err
	}
	if by := access.OwnerOf(ctx); by.By == "" || by.Team != row.Team { // else it is that of whoever begins it by hand
		ctx = access.ForOwner(ctx, stored.owner())
	}
	ctx = context.WithValue(ctx, occurrenceKey{}, occurrence{p.name, o})
	record, _, err = k.subs.Submit(ctx, stored.submission(p.plan, files))
	return record, err
}
