package schedules

import (
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

const (
	// lookEvery is how often the clock is looked at: it may have been set, and the machine may
	// have slept.
	lookEvery = 30 * time.Second
	// inTime is how late an occurrence may be that nobody calls missed.
	inTime = time.Minute
	// mostStarting bounds the occurrences that begin at once.
	mostStarting = 64
	// mostMadeUp bounds the missed occurrences that are made up for, and mostMissed those that are
	// remembered, each time.
	mostMadeUp = 100
	mostMissed = 1000
)

// keeper keeps the times of the schedules: it has a run for each time that comes, or stores why there is none.
type keeper struct{ *shared }

// each calls do with every stored schedule that can be read, without its input.
func (k keeper) each(ctx context.Context, do func(storedSchedule)) error {
	for before := int64(0); ; {
		rows, err := k.store.Schedules.List(ctx, store.Owned{}, before, 0)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			before = k.store.Schedules.Behind(row)
			stored, err := readSchedule(row)
			if err != nil {
				k.logger.Error("schedule can't be read", "schedule", row.Seq, fault.LogAttr(err))
			}
			do(stored)
		}
	}
}

// restore takes in the schedules that are stored. Those with occurrences that wait are looked at first.
func (k keeper) restore(ctx context.Context) error {
	all, err := k.store.Occurrences.Waiting(ctx, 0)
	if err != nil {
		return err
	}
	waiting := map[int64][]store.Occurrence{}
	for _, o := range all {
		waiting[o.Schedule] = append(waiting[o.Schedule], o)
	}
	return k.each(ctx, func(stored storedSchedule) {
		plan, err := stored.plan()
		if err != nil {
			k.logger.Error("schedule not kept", "schedule", stored.row.Seq, fault.LogAttr(err))
			return
		}
		p := plannedOf(stored.row, plan)
		p.waiting = waiting[p.seq]
		k.table.add(p)
		due := p.nextLook()
		if len(p.waiting) > 0 {
			due = time.Unix(0, 0)
		}
		k.table.evaluateAt(p, due)
	})
}

// run looks at the schedules when they are due, until ctx ends.
func (k keeper) run(ctx context.Context) {
	var looks sync.WaitGroup
	defer looks.Wait()
	places := make(chan struct{}, mostStarting)
	for ctx.Err() == nil {
		now := k.clock.Now()
		due, next := k.table.takeDue(now)
		for _, p := range due {
			looks.Go(func() {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-places }()
				k.evaluate(ctx, p)
			})
		}
		wait := lookEvery
		if !next.IsZero() {
			wait = min(max(next.Sub(now), 0), lookEvery)
		}
		select {
		case <-k.clock.After(wait):
		case <-k.table.changed:
		case <-ctx.Done():
		}
	}
}

// evaluate does what a schedule has to do now, and notes when it is to be looked at again.
func (k keeper) evaluate(ctx context.Context, p *planned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k.subs.ShuttingDown() {
		return // the next process does, or this one when it has started
	}
	err := k.catchUp(ctx, p)
	if err == nil {
		err = k.goOnWaiting(ctx, p)
	}
	next := p.nextLook()
	if err != nil && ctx.Err() == nil && !k.subs.ShuttingDown() {
		k.logger.Error("schedule not kept, will try again", "schedule", p.seq, fault.LogAttr(err))
		next = k.clock.Now().Add(lookEvery)
	}
	k.table.evaluateAt(p, next)
}

// nextLook returns when the next occurrence of a schedule is due; zero if there is none.
func (p *planned) nextLook() time.Time {
	next := p.nextTime()
	if next.IsZero() {
		return next
	}
	return next.Add(p.plan.Delay(p.name))
}

// nextTime returns the next planned time that wasn't looked at; zero if there is none.
func (p *planned) nextTime() time.Time {
	if p.paused || p.gone || p.plan.Count > 0 && p.fired >= p.plan.Count {
		return time.Time{}
	}
	return p.plan.Next(p.until)
}

// catchUp deals with the times of a schedule that have come since the last look.
func (k keeper) catchUp(ctx context.Context, p *planned) error {
	now, delay := k.clock.Now(), p.plan.Delay(p.name)
	due := p.dueUntil(now.Add(-delay))
	if len(due) == 0 {
		return nil
	}
	begin := p.toBegin(due, now.Add(-delay))
	if missed := without(due, begin); len(missed) > 0 {
		if err := k.remember(ctx, p, missed, api.OccurrenceMissed,
			"no server looked at the clock in time"); err != nil {
			return err
		}
	}
	if len(begin) > 1 { // one after the other
		return k.remember(ctx, p, begin, api.OccurrenceWaiting, "")
	}
	for _, at := range begin {
		return k.fire(ctx, p, at)
	}
	return nil
}

// dueUntil returns the planned times up to another that weren't looked at: all of them that a
// count bounds, else the last ones.
func (p *planned) dueUntil(to time.Time) (due []time.Time) {
	const portion = 2 * mostMissed
	var at time.Time
	for from, found := p.nextTime(), 0; !from.IsZero() && !from.After(to); from = p.plan.Next(at) {
		due, at = append(due, from), from
		found++
		if p.plan.Count > 0 && found >= p.plan.Count-p.fired {
			break
		}
		if p.plan.Count == 0 && found%portion == 0 { // nearer to the end, if it is far away
			nearer := to.Add(-at.Sub(due[len(due)-portion]))
			if nearer.After(at) {
				at = nearer
			}
		}
	}
	return due[max(0, len(due)-p.most()):]
}

// most is how many times of a schedule are dealt with at once.
func (p *planned) most() int {
	if p.plan.Count > 0 {
		return p.plan.Count
	}
	return mostMissed
}

// toBegin returns those of the times that are due which are to have a run, by the policy for
// missed ones. All but the last one are missed, and the last one is if it is late.
func (p *planned) toBegin(due []time.Time, now time.Time) []time.Time {
	last := due[len(due)-1:]
	onTime := now.Sub(last[0]) <= inTime
	switch p.plan.Missed {
	case api.MissedSkip:
		if !onTime {
			return nil
		}
		return last
	case api.MissedAll:
		due = due[max(0, len(due)-mostMadeUp):]
		for len(due) > 0 && now.Sub(due[0]) > max(p.plan.Grace, inTime) {
			due = due[1:]
		}
		return due
	}
	if !onTime && now.Sub(last[0]) > p.plan.Grace {
		return nil
	}
	return last
}

// without returns the times before those of its tail.
func without(all, tail []time.Time) []time.Time { return all[:len(all)-len(tail)] }

// remember stores times that have no run, or none yet.
func (k keeper) remember(
	ctx context.Context, p *planned, times []time.Time, outcome api.OccurrenceOutcome, reason string,
) error {
	rows := make([]store.Occurrence, 0, len(times))
	for _, at := range times {
		o := k.occurrenceOf(p, at)
		o.Outcome, o.Reason = string(outcome), reason
		rows = append(rows, o)
	}
	added, err := k.store.Occurrences.Add(ctx, p.seq, times[len(times)-1], rows...)
	if err != nil {
		return ignoreDeleted(p, err)
	}
	p.lookedAt(times[len(times)-1], added)
	k.figures.became(outcome, added)
	if outcome != api.OccurrenceWaiting {
		k.logger.Info("occurrences without a run", "schedule", p.seq, "outcome", outcome, "occurrences", added)
		return nil
	}
	return k.readWaiting(ctx, p)
}

// ignoreDeleted drops the error of a schedule that was removed meanwhile.
func ignoreDeleted(p *planned, err error) error {
	if fault.Is(err, fault.NotFound) {
		p.gone = true
		return nil
	}
	return err
}

func (p *planned) lookedAt(until time.Time, more int) {
	if until.After(p.until) {
		p.until = until
	}
	p.fired += more
}

func (k keeper) readWaiting(ctx context.Context, p *planned) error {
	all, err := k.store.Occurrences.Waiting(ctx, p.seq)
	if err == nil {
		p.waiting = all
	}
	return err
}

func (k keeper) occurrenceOf(p *planned, at time.Time) store.Occurrence {
	now := k.clock.Now()
	late := now.Sub(at.Add(p.plan.Delay(p.name)))
	return store.Occurrence{Schedule: p.seq, Planned: at, Fired: now, LateMS: max(late, 0).Milliseconds()}
}
