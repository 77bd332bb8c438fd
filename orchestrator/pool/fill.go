package pool

import (
	"context"
	"errors"
	goruntime "runtime"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// poolTick is how often somebody looks after the pool when nothing happens.
	poolTick = time.Second
	// surveyTick is how often all units are asked what they want.
	surveyTick = 10 * time.Second
	// quietAfterCall is what a call has to itself: with a sandbox that waited, mostly all that it takes.
	quietAfterCall = 50 * time.Millisecond
	// quietTime without a call is enough to start a sandbox beside runs on all processors:
	// they take long, and are hardly delayed.
	quietTime = time.Second
)

// Run keeps the pool full until ctx ends, one sandbox after the other, and empties it then.
func (p *Pool) Run(ctx context.Context, world run.World) {
	p.world = world
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
func (p *Pool) survey(ctx context.Context) {
	fixed := map[string]int{}
	for _, u := range p.world.Units(ctx) {
		fixed[u.Name] = p.source.Wants(u)
	}
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, n := range fixed {
		if n > 0 || p.units[name] != nil {
			p.unit(name).fixed = n
		}
	}
	for name, units := range p.units {
		if _, there := fixed[name]; !there {
			units.fixed, units.calls = 0, nil
		}
	}
}

// tend removes the sandboxes for which no run is to be expected any more.
func (p *Pool) tend(ctx context.Context) {
	p.measure(ctx)
	keys := p.keys(ctx)
	now := time.Now()
	var gone []*Sandbox
	p.mu.Lock()
	for name, units := range p.units {
		gone = append(gone, units.trim(now, keys[name], units.wanted(now, p.opts.Idle), p.opts.MaxAge)...)
	}
	p.mu.Unlock()
	p.Discard(ctx, gone...)
	p.sweep(ctx)
}

// measure looks at what loaded programs have written while they wait, as is done with those
// of runs. Of a unit whose program wrote too much none is loaded ahead any more.
func (p *Pool) measure(ctx context.Context) {
	for waiting, layout := range p.loaded() {
		if !layout.OverDisk(ctx, waiting.Spec.Limits) {
			continue
		}
		waiting.full.Store(true)
		p.logger.Warn("waiting sandbox wrote more than it may", "unit", waiting.Spec.Unit, "sandbox", waiting.ID)
		p.mu.Lock()
		p.unit(waiting.Spec.Unit).mutes(waiting.Key)
		p.mu.Unlock()
	}
}

// loaded are the waiting sandboxes that have a program, and their directories: a run that
// claims one moves it.
func (p *Pool) loaded() map[*Sandbox]runtime.Layout {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[*Sandbox]runtime.Layout{}
	for _, units := range p.units {
		for _, waiting := range units.waiting {
			if waiting.Loaded {
				all[waiting] = waiting.Layout
			}
		}
	}
	return all
}

// keys are those of the newest contents of all units that have sandboxes.
func (p *Pool) keys(ctx context.Context) map[string]string {
	keys := map[string]string{}
	for _, name := range p.stocked() {
		if u, err := p.world.Unit(ctx, name); err == nil {
			keys[name] = Key(u)
		}
	}
	return keys
}

func (p *Pool) stocked() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, units := range p.units {
		if len(units.waiting) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// fillOne starts one more sandbox, where one is wanted and nobody is disturbed.
func (p *Pool) fillOne(ctx context.Context) bool {
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
	units := p.unit(name)
	units.coming--
	delete(p.filling, id)
	if err != nil {
		p.failed(units, name, key, err)
		return ctx.Err() == nil
	}
	units.waiting = append(units.waiting, waiting)
	units.refills++
	p.refilled(name)
	return true
}

// start makes a sandbox of the unit's newest content wait: as far loaded as can be.
func (p *Pool) start(ctx context.Context, name, id string) (_ *Sandbox, key string, err error) {
	u, err := p.world.Unit(ctx, name)
	if err != nil {
		return nil, "", err
	}
	key = Key(u)
	p.mu.Lock()
	loaded := p.unit(name).asks == key
	p.mu.Unlock()
	waiting, err := p.source.Start(ctx, u, id, loaded)
	return waiting, key, err
}

// failed makes the units wait, or its sandboxes be loaded less far. It is called with the
// lock held.
func (p *Pool) failed(units *unitPool, name, key string, err error) {
	units.failures++
	if errors.Is(err, ErrNotReady) && units.mutes(key) {
		return
	}
	units.pause = time.Now().Add(fillPause)
	p.logger.Warn("no sandbox to wait for runs", "unit", name, "kind", fault.KindOf(err).String(), fault.LogAttr(err))
}

// next chooses a unit that is to have one more sandbox, if that is in the way of no run: of
// those that ask for theirs the first, else the one that was called last. It returns the id
// of what is to be started.
func (p *Pool) next() (name, id string) {
	running, waiting := p.world.Busy()
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	quiet := now.Sub(p.lastCall())
	if p.cold > 0 || waiting || quiet < quietAfterCall || running >= goruntime.NumCPU() && quiet < quietTime {
		return "", ""
	}
	all, bytes := p.stock()
	var best *unitPool
	for unit, units := range p.units {
		short := len(units.waiting)+units.coming+units.returning(now) < units.wanted(now, p.opts.Idle)
		if !short || now.Before(units.pause) || bytes+units.bytes() > p.opts.MemoryBytes {
			continue
		}
		if best == nil || units.before(best) {
			name, best = unit, units
		}
	}
	if best == nil || all >= p.opts.Size {
		return "", ""
	}
	id, err := run.NewID()
	if err != nil {
		return "", ""
	}
	best.coming++
	p.filling[id] = true
	return name, id
}

// before orders units by who gets a sandbox first.
func (s *unitPool) before(other *unitPool) bool {
	mine, theirs := len(s.waiting) < s.fixed, len(other.waiting) < other.fixed
	if mine != theirs {
		return mine
	}
	return s.lastCall().After(other.lastCall())
}

// stock counts what waits, or is about to, and what it takes of memory.
func (p *Pool) stock() (all int, bytes int64) {
	for _, units := range p.units {
		n := len(units.waiting) + units.coming
		all += n
		bytes += int64(n) * units.bytes()
	}
	return all, bytes
}

// lastCall is when any unit was called last.
func (p *Pool) lastCall() (last time.Time) {
	for _, units := range p.units {
		if at := units.lastCall(); at.After(last) {
			last = at
		}
	}
	return last
}
