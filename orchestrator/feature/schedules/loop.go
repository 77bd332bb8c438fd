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

// KeepTimes looks at the schedules when they are due, until ctx ends.
func (s *Scheduler) KeepTimes(ctx context.Context) {
	var looks sync.WaitGroup
	defer looks.Wait()
	places := make(chan struct{}, mostStarting)
	for ctx.Err() == nil {
		now := s.clock.Now()
		due, next := s.table.takeDue(now)
		for _, p := range due {
			looks.Go(func() {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-places }()
				s.lookAt(ctx, p)
			})
		}
		wait := lookEvery
		if !next.IsZero() {
			wait = min(max(next.Sub(now), 0), lookEvery)
		}
		select {
		case <-s.clock.After(wait):
		case <-s.table.changed:
		case <-ctx.Done():
		}
	}
}

// lookAt does what a schedule has to do now, and notes when it is to be looked at again.
func (s *Scheduler) lookAt(ctx context.Context, p *planned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.host.ShuttingDown() {
		return // the next process does, or this one when it has started
	}
	err := s.keepUp(ctx, p)
	if err == nil {
		err = s.goOnWaiting(ctx, p)
	}
	next := p.nextLook()
	if err != nil && ctx.Err() == nil && !s.host.ShuttingDown() {
		s.logger.Error("schedule not kept, will try again", "schedule", p.seq, fault.LogAttr(err))
		next = s.clock.Now().Add(lookEvery)
	}
	s.table.lookAt(p, next)
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

// keepUp deals with the times of a schedule that have come since the last look.
func (s *Scheduler) keepUp(ctx context.Context, p *planned) error {
	now, delay := s.clock.Now(), p.plan.Delay(p.name)
	due := p.dueUntil(now.Add(-delay))
	if len(due) == 0 {
		return nil
	}
	begin := p.toBegin(due, now.Add(-delay))
	if missed := without(due, begin); len(missed) > 0 {
		if err := s.remember(ctx, p, missed, api.OccurrenceMissed,
			"no server looked at the clock in time"); err != nil {
			return err
		}
	}
	if len(begin) > 1 { // one after the other
		return s.remember(ctx, p, begin, api.OccurrenceWaiting, "")
	}
	for _, at := range begin {
		return s.occur(ctx, p, at)
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
func (s *Scheduler) remember(
	ctx context.Context, p *planned, times []time.Time, outcome api.OccurrenceOutcome, reason string,
) error {
	rows := make([]store.Occurrence, 0, len(times))
	for _, at := range times {
		o := s.occurrenceOf(p, at)
		o.Outcome, o.Reason = string(outcome), reason
		rows = append(rows, o)
	}
	added, err := s.store.AddOccurrences(ctx, p.seq, times[len(times)-1], rows...)
	if err != nil {
		return goneIsFine(p, err)
	}
	p.lookedAt(times[len(times)-1], added)
	s.opts.Became(outcome, added)
	if outcome != api.OccurrenceWaiting {
		s.logger.Info("occurrences without a run", "schedule", p.seq, "outcome", outcome, "occurrences", added)
		return nil
	}
	return s.readWaiting(ctx, p)
}

// goneIsFine drops the error of a schedule that was removed meanwhile.
func goneIsFine(p *planned, err error) error {
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

func (s *Scheduler) readWaiting(ctx context.Context, p *planned) error {
	all, err := s.store.WaitingOccurrences(ctx, p.seq)
	if err == nil {
		p.waiting = all
	}
	return err
}

func (s *Scheduler) occurrenceOf(p *planned, at time.Time) store.Occurrence {
	now := s.clock.Now()
	late := now.Sub(at.Add(p.plan.Delay(p.name)))
	return store.Occurrence{Schedule: p.seq, Planned: at, Fired: now, LateMS: max(late, 0).Milliseconds()}
}
