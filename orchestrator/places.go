package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/metrics"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// place is what the queue has to know of a job.
func (l *loop) place(j *job) queue.Run {
	r := queue.Run{
		ID: j.ID, Team: j.owner().Team, Token: j.owner().By, Unit: j.Record.Unit, Limit: j.terms.Concurrency,
		Bytes: l.memoryOf(j), Slotless: l.conducts(j.Unit), Machine: j.Record.Worker,
	}
	if l.placer != nil && !r.Slotless {
		r.Needs, r.Rank = l.placer.Place(j.Run)
	}
	return r
}

// executionOf returns what makes the attempts of a run.
func executionOf(placer feature.Placer, kind run.Kind, r *run.Run) run.Execution {
	if placer == nil {
		return kind.Execution(r)
	}
	return placer.Execution(r, kind)
}

// waitsIn returns what tells where a run waits and for what; nil: it doesn't, or another process knows.
func waitsIn(q *queue.Queue, led *jobs) func(id, unit string, state api.State, since time.Time) *api.Waiting {
	return func(id, unit string, state api.State, since time.Time) *api.Waiting {
		j := led.get(id)
		if j != nil {
			if w := j.WaitsFor(); w != nil {
				return w
			}
		}
		if state != api.Idle && state != api.Failed { // of an attempt, after which there is another one
			return nil
		}
		if place, waits := q.PlaceOf(unit, id); waits {
			return &api.Waiting{
				Place: place.Ahead + 1, Reason: string(place.Reason), Message: waitText(place), Since: since,
			}
		}
		if j != nil && j.turn != nil && state == api.Idle {
			return &api.Waiting{Reason: "session", Message: "an earlier turn of its session goes on", Since: since}
		}
		return nil
	}
}

// counts reports whether the client of ctx may know how many runs wait: with teams, whoever sees all of them.
func (o Options) counts(ctx context.Context) bool {
	return access.ReachOf(ctx).All || !o.Teams.Any()
}

func waitText(p queue.Place) string {
	switch p.Reason {
	case queue.ForSlot:
		return fmt.Sprintf("all slots are taken, of which there are %d", p.Slots)
	case queue.ForUnit:
		return fmt.Sprintf("as many runs of its unit go on as may: %d", p.Limit)
	case queue.ForAnswer:
		return "a run of its unit waits for an answer, and those after it for that run"
	case queue.ForMemory:
		return "the memory for runs is taken"
	case queue.ForTeam:
		return fmt.Sprintf("its team holds as many slots as it may: %d", p.Limit)
	case queue.ForToken:
		return fmt.Sprintf("its token holds as many slots as it may: %d", p.Limit)
	case queue.ForMachine:
		return machineText(p)
	case queue.ForEnd:
		return "the server is about to end"
	}
	return "other units have their turn before"
}

// machineText says what a run lacks that waits for a machine.
func machineText(p queue.Place) string {
	own := slices.DeleteFunc(slices.Clone(p.Needs), isOurs)
	text := "no machine takes new runs"
	if len(own) > 0 {
		text = "no machine that takes new runs has " + strings.Join(own, ", ")
	}
	if p.Closed > 0 {
		text += fmt.Sprintf("; %d that could are drained or away", p.Closed)
	}
	return text
}

// Demand returns what runs that wait lack of machines.
func (s *Service) Demand() []api.Demand {
	all := []api.Demand{}
	for _, d := range s.queue.Demand() {
		needs := slices.DeleteFunc(d.Needs, isOurs)
		at := slices.IndexFunc(all, func(other api.Demand) bool { return slices.Equal(other.Needs, needs) })
		if at < 0 {
			at = len(all)
			all = append(all, api.Demand{Needs: append([]string{}, needs...), Since: d.Since.UTC()})
		}
		sum := &all[at]
		sum.Waiting += d.Waiting
		sum.Slots, sum.Running = max(sum.Slots, d.Slots), max(sum.Running, d.Running)
		if d.Since.Before(sum.Since) {
			sum.Since = d.Since.UTC()
		}
	}
	return all
}

// isOurs reports whether a need is one of the server's own: no label of a machine has a slash.
func isOurs(need string) bool { return strings.Contains(need, "/") }

// memoryOf returns how much memory a run may take; 0 where its kind takes none of the machine.
func (l *loop) memoryOf(j *job) int64 {
	if kind, err := l.kinds.Of(j.Unit); err == nil {
		if _, measures := kind.(run.Measurer); measures {
			return j.Limits.MemoryBytes
		}
	}
	return 0
}

// checkMemory refuses a run that would never have its turn.
func (l *loop) checkMemory(j *job) error {
	place := l.place(j)
	total, needs := l.queue.MostMemory(place.Needs), place.Bytes
	if total == 0 || needs <= total {
		return nil
	}
	rule := "the setting memory"
	if l.opts.MemoryBytes == 0 {
		rule = "80 % of the machine's memory"
	}
	return fault.New(fault.Forbidden, "a run of %q may take %s of memory, and all runs together %s (%s)",
		j.Record.Unit, quantity.SizeText(needs), quantity.SizeText(total), rule).
		WithHint("lower %s, or set `memory: %s` in the file of a machine that has it",
			j.Unit.PlaceOfLimit("memory"), quantity.SizeText(needs))
}

// learnMemory bounds the memory of all runs by that of the machine, as soon as it is known.
func (s *Service) learnMemory(ctx context.Context) {
	for kind := range s.kinds.Each() {
		measurer, ok := kind.(run.Measurer)
		if !ok {
			continue
		}
		if has := measurer.Memory(ctx); has > 0 {
			s.queue.SetMemory(run.MemoryForRuns(has))
			return
		}
	}
}

// Room implements run.World.
func (w world) Room() int64 {
	total, used := w.queue.Memory()
	if total == 0 {
		return math.MaxInt64
	}
	return total - used
}

// enqueue gives a new run a place in the queue. A turn of a session gets one when the turns
// before it are over.
func (l *loop) enqueue(j *job) (err error) {
	bound := l.queueBound(j.Unit)
	if j.turn != nil {
		return l.queue.Takes(l.place(j), bound)
	}
	j.permit, err = l.queue.Enter(l.place(j), bound)
	return err
}

// queueBound returns how many runs of a unit may wait. A command's own runs all get their turn.
func (l *loop) queueBound(u *unit.Unit) int {
	if !l.durable {
		return l.opts.Queue
	}
	return cmp.Or(l.rules.Of(u.Name).Queue, u.Policy.Queue, l.opts.Queue)
}

// queueWait returns how long a run of a unit may wait.
func (l *loop) queueWait(u *unit.Unit) time.Duration {
	if !l.durable {
		return l.opts.QueueWait
	}
	return cmp.Or(l.rules.Of(u.Name).QueueWait, u.Policy.QueueWait, l.opts.QueueWait)
}

// warnOfWait warns in the record of a new run that its turn will probably come too late.
func (l *loop) warnOfWait(ctx context.Context, j *job) {
	name := j.Record.Unit
	waiting, lanes := l.queue.Ahead(name)
	ahead, most := metrics.Ahead{Runs: waiting, Lanes: lanes}, l.queueWait(j.Unit)
	wait, passed := l.recent.ExpectedWait(name, ahead, most, time.Now())
	if passed {
		l.logger.Warn("runs will wait longer than queue_wait", "unit", name, "waiting", ahead.Runs, "expected_ms",
			wait.Milliseconds())
	}
	if wait > most && !l.opts.counts(ctx) { // how many others ask for is nobody's business
		j.Record.Warnings = append(j.Record.Warnings, fmt.Sprintf(
			"by how long runs of this unit took lately the turn of this one comes in about %v, and queue_wait ends it "+
				"after %v", wait.Round(time.Second), most))
	} else if wait > most {
		j.Record.Warnings = append(j.Record.Warnings, fmt.Sprintf(
			"%d runs of this unit wait for their turn: by how long such runs took lately that of this one comes in "+
				"about %v, and queue_wait ends it after %v",
			ahead.Runs, wait.Round(time.Second), most))
	}
}
