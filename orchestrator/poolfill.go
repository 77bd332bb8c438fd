package orchestrator

import (
	"context"
	"errors"
	goruntime "runtime"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

const (
	// poolTick is how often somebody looks after the pool when nothing happens.
	poolTick = time.Second
	// surveyTick is how often all units are asked what they want.
	surveyTick = 10 * time.Second
	// breath is what a call has to itself: with a sandbox that waited, mostly all that it takes.
	breath = 50 * time.Millisecond
	// quietTime without a call is enough to start a sandbox beside runs on all processors:
	// they take long, and are hardly delayed.
	quietTime = time.Second
)

// run keeps the pool full until ctx ends, one sandbox after the other, and empties it then.
func (p *pool) run(ctx context.Context) {
	defer func() { p.empty(context.WithoutCancel(ctx)) }()
	tick := time.NewTicker(poolTick)
	defer tick.Stop()
	var surveyed time.Time
	for ctx.Err() == nil {
		if time.Since(surveyed) > surveyTick {
			p.survey(ctx)
			surveyed = time.Now()
		}
		for p.fillOne(ctx) {
			continue
		}
		select {
		case <-p.wake:
		case <-tick.C:
			p.tend(ctx)
		case <-ctx.Done():
		}
	}
}

// survey asks the units for how many sandboxes they want.
func (p *pool) survey(ctx context.Context) {
	listed, err := p.service.units.List(ctx)
	if err != nil {
		return // with ctx
	}
	fixed := map[string]int{}
	for _, l := range listed {
		if l.Unit != nil {
			fixed[l.Name] = p.service.warmOf(l.Unit)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, n := range fixed {
		if n > 0 || p.shelves[name] != nil {
			p.shelf(name).fixed = n
		}
	}
	for name, shelf := range p.shelves {
		if _, there := fixed[name]; !there {
			shelf.fixed, shelf.calls = 0, nil
		}
	}
}

// warmOf is how many sandboxes a unit wants to wait, whoever calls it.
func (s *Service) warmOf(u *unit.Unit) int {
	switch own := s.opts.Units[u.Name].Warm; {
	case !parkable(u.Capsule):
		return 0
	case own != nil:
		return *own
	}
	return u.Capsule.Agent.Warm
}

// tend removes the sandboxes for which no run is to be expected any more.
func (p *pool) tend(ctx context.Context) {
	p.measure(ctx)
	keys := p.keys(ctx)
	now := time.Now()
	var gone []*parked
	p.mu.Lock()
	for name, shelf := range p.shelves {
		gone = append(gone, shelf.cull(now, keys[name], shelf.wanted(now, p.opts.Idle), p.opts.MaxAge)...)
	}
	p.mu.Unlock()
	p.discard(ctx, gone)
	p.sweep(ctx)
}

// measure looks at what loaded programs have written while they wait, as is done with those
// of runs. Of a unit whose program wrote too much none is loaded ahead any more.
func (p *pool) measure(ctx context.Context) {
	for waiting, layout := range p.loaded() {
		if !layout.OverDisk(ctx, waiting.spec.Limits) {
			continue
		}
		waiting.over.Store(true)
		p.logger.Warn("waiting sandbox wrote more than it may", "unit", waiting.spec.Unit, "sandbox", waiting.id)
		p.mu.Lock()
		p.shelf(waiting.spec.Unit).silence(waiting.key)
		p.mu.Unlock()
	}
}

// loaded are the waiting sandboxes that have a program, and their directories: a run that
// claims one moves it.
func (p *pool) loaded() map[*parked]runtime.Layout {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[*parked]runtime.Layout{}
	for _, shelf := range p.shelves {
		for _, waiting := range shelf.waiting {
			if waiting.deep {
				all[waiting] = waiting.layout
			}
		}
	}
	return all
}

// keys are those of the newest contents of all units that have sandboxes.
func (p *pool) keys(ctx context.Context) map[string]string {
	keys := map[string]string{}
	for _, name := range p.stocked() {
		if u, err := p.service.units.Get(ctx, name); err == nil {
			keys[name] = imageKey(u.Name, u.Version)
		}
	}
	return keys
}

func (p *pool) stocked() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, shelf := range p.shelves {
		if len(shelf.waiting) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// fillOne starts one more sandbox, where one is wanted and nobody is disturbed.
func (p *pool) fillOne(ctx context.Context) bool {
	name, id := p.next()
	if name == "" {
		return false
	}
	waiting, key, err := p.start(ctx, name, id)
	if leaves(err) {
		p.leave(id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	shelf := p.shelf(name)
	shelf.coming--
	delete(p.filling, id)
	if err != nil {
		p.failed(shelf, name, key, err)
		return ctx.Err() == nil
	}
	shelf.waiting = append(shelf.waiting, waiting)
	shelf.refills++
	p.service.metrics.refilled(name)
	return true
}

// start makes a sandbox of the unit's newest content wait: as far loaded as can be.
func (p *pool) start(ctx context.Context, name, id string) (_ *parked, key string, err error) {
	u, err := p.service.units.Get(ctx, name)
	if err != nil {
		return nil, "", err
	}
	key = imageKey(u.Name, u.Version)
	p.mu.Lock()
	deep := p.shelf(name).asks == key
	p.mu.Unlock()
	waiting, err := p.service.park(ctx, u, id, deep)
	return waiting, key, err
}

// failed makes the shelf wait, or its sandboxes be loaded less far. It is called with the
// lock held.
func (p *pool) failed(shelf *shelf, name, key string, err error) {
	shelf.failures++
	if errors.Is(err, errNeverWaited) && shelf.silence(key) {
		return
	}
	shelf.pause = time.Now().Add(fillPause)
	p.logger.Warn("no sandbox to wait for runs", "unit", name, "kind", fault.KindOf(err).String(), about(err))
}

// next chooses a unit that is to have one more sandbox, if that is in the way of no run: of
// those that ask for theirs the first, else the one that was called last. It returns the id
// of what is to be started.
func (p *pool) next() (name, id string) {
	running, waiting := p.service.queue.Counts()
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	quiet := now.Sub(p.lastCall())
	if p.cold > 0 || len(waiting) > 0 || quiet < breath || running >= goruntime.NumCPU() && quiet < quietTime {
		return "", ""
	}
	all, bytes := p.stock()
	var best *shelf
	for unit, shelf := range p.shelves {
		short := len(shelf.waiting)+shelf.coming+shelf.soon(now) < shelf.wanted(now, p.opts.Idle)
		if !short || now.Before(shelf.pause) || bytes+shelf.bytes() > p.opts.MemoryBytes {
			continue
		}
		if best == nil || shelf.before(best) {
			name, best = unit, shelf
		}
	}
	if best == nil || all >= p.opts.Size {
		return "", ""
	}
	id, err := newRunID("")
	if err != nil {
		return "", ""
	}
	best.coming++
	p.filling[id] = true
	return name, id
}

// before orders shelves by who gets a sandbox first.
func (s *shelf) before(other *shelf) bool {
	mine, theirs := len(s.waiting) < s.fixed, len(other.waiting) < other.fixed
	if mine != theirs {
		return mine
	}
	return s.lastCall().After(other.lastCall())
}

// stock counts what waits, or is about to, and what it takes of memory.
func (p *pool) stock() (all int, bytes int64) {
	for _, shelf := range p.shelves {
		n := len(shelf.waiting) + shelf.coming
		all += n
		bytes += int64(n) * shelf.bytes()
	}
	return all, bytes
}

// lastCall is when any unit was called last.
func (p *pool) lastCall() (last time.Time) {
	for _, shelf := range p.shelves {
		if at := shelf.lastCall(); at.After(last) {
			last = at
		}
	}
	return last
}
