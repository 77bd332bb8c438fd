package pool

import (
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// idleShare is the part of one processor that a program may use while it waits for its run:
// nobody has asked it for anything.
const idleShare = 0.05

// reading is what a waiting sandbox had used of the processors at a time.
type reading struct {
	turn int // how often the sandbox had come back from a run
	at   time.Time
	cpu  time.Duration
}

// share is the part of one processor that was used between two readings.
func (r reading) share(later reading) float64 {
	return float64(later.cpu-r.cpu) / float64(later.at.Sub(r.at))
}

// watch looks regularly at what loaded programs compute while they wait, until ctx ends. No
// run has asked for that, so no time limit ends it.
func (p *Pool) watch(ctx context.Context) {
	tick := time.NewTicker(p.opts.Watch)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		var all sync.WaitGroup
		for waiting := range p.loaded() {
			all.Go(func() { p.readMeter(ctx, waiting) })
		}
		all.Wait()
	}
}

// readMeter compares what a sandbox has used with the reading before. A sandbox that is some
// run's by now, or was meanwhile, is left alone.
func (p *Pool) readMeter(ctx context.Context, waiting *Sandbox) {
	p.mu.Lock()
	before := waiting.meter
	p.mu.Unlock()
	cpu, err := waiting.Runtime.CPUTime(ctx)
	if err != nil {
		p.logger.Debug("waiting sandbox not measured", "sandbox", waiting.ID, fault.LogAttr(err))
		return
	}
	now := reading{turn: before.turn, at: time.Now(), cpu: cpu}
	p.mu.Lock()
	defer p.mu.Unlock()
	units := p.unit(waiting.Spec.Unit)
	if !units.has(waiting.ID) || waiting.meter != before || waiting.spoiled.Load() {
		return
	}
	waiting.meter = now
	if before.at.IsZero() || before.share(now) <= idleShare {
		return
	}
	units.spoil(waiting)
	p.logger.Warn("waiting sandbox used a processor", "unit", waiting.Spec.Unit, "sandbox", waiting.ID,
		"cpu_ms", (now.cpu - before.cpu).Milliseconds(), "within_ms", now.at.Sub(before.at).Milliseconds())
}
