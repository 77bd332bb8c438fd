package pool

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// poolTick is how often Run checks the pool when nothing happens.
	poolTick = time.Second
	// surveyTick is how often Run asks all units how many sandboxes they want.
	surveyTick = 10 * time.Second
	// quietAfterCall is how long no sandbox is started after a call. A run in a warm sandbox
	// mostly ends within this time.
	quietAfterCall = 50 * time.Millisecond
	// quietTime is how long no call may come before a sandbox is started while all processors
	// have runs. Those runs are long, so it hardly delays them.
	quietTime = time.Second
)

// Run fills the pool, one sandbox after the other, until ctx ends. Then it empties the pool.
func (p *Pool) Run(ctx context.Context, world run.World) {
	p.mu.Lock()
	p.world = world
	p.mu.Unlock()
	defer func() { p.empty(context.WithoutCancel(ctx)) }()
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(ctx) })
	defer watching.Wait()
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
			p.removeUnneeded(ctx)
		case <-ctx.Done():
		}
	}
}

// survey asks all units how many sandboxes they want.
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

// removeUnneeded removes the sandboxes for which no run is expected.
func (p *Pool) removeUnneeded(ctx context.Context) {
	p.measure(ctx)
	keys := p.keys(ctx)
	_, backlog := p.busy()
	most := p.mostMemory()
	now := time.Now()
	var gone []*Sandbox
	p.mu.Lock()
	for name, units := range p.units {
		gone = append(gone, units.trim(now, keys[name], units.wanted(now, p.opts.Idle, backlog[name]),
			p.opts.MaxAge)...)
	}
	gone = append(gone, p.shrink(most)...)
	p.mu.Unlock()
	p.Discard(ctx, gone...)
	p.sweepLeft(ctx)
}

// shrink takes out sandboxes until the others take no more memory than they may: runs need
// it. Those of the unit that was called longest ago go first. The caller holds the lock.
func (p *Pool) shrink(most int64) (gone []*Sandbox) {
	for _, bytes := p.count(); bytes > most; _, bytes = p.count() {
		var least *unitPool
		for _, units := range p.units {
			if len(units.waiting) > 0 && (least == nil || least.before(units)) {
				least = units
			}
		}
		if least == nil {
			break
		}
		gone = append(gone, least.waiting[0])
		least.waiting = least.waiting[1:]
	}
	return gone
}

// measure checks the disk limit of waiting sandboxes with a loaded program. If a program
// wrote too much, no program of its unit is loaded ahead any more.
func (p *Pool) measure(ctx context.Context) {
	for waiting, layout := range p.loaded() {
		if !layout.OverDisk(ctx, waiting.Spec.Limits) {
			continue
		}
		p.logger.Warn("waiting sandbox wrote more than it may", "unit", waiting.Spec.Unit, "sandbox", waiting.ID)
		p.mu.Lock()
		p.unit(waiting.Spec.Unit).spoil(waiting)
		p.mu.Unlock()
	}
}

// loaded returns the waiting sandboxes with a loaded program, each with its layout. The
// layout is a copy, since a run that claims a sandbox moves its directory.
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

// keys returns the key of the newest content of each unit that has sandboxes.
func (p *Pool) keys(ctx context.Context) map[string]string {
	keys := map[string]string{}
	for _, name := range p.unitsWithSandboxes() {
		if u, err := p.world.Unit(ctx, name); err == nil {
			keys[name] = Key(u)
		}
	}
	return keys
}

func (p *Pool) unitsWithSandboxes() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, units := range p.units {
		if len(units.waiting) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// fillOne starts one more sandbox if a unit wants one and no run is disturbed.
func (p *Pool) fillOne(ctx context.Context) bool {
	name, id := p.next()
	if name == "" {
		return false
	}
	waiting, key, err := p.start(ctx, name, id)
	if mayBeLeft(err) {
		p.rememberLeft(id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	units := p.unit(name)
	units.coming--
	delete(p.filling, id)
	if err != nil {
		if ctx.Err() == nil {
			p.noteFailure(units, name, key, err)
		}
		return ctx.Err() == nil
	}
	units.waiting = append(units.waiting, waiting)
	units.refills++
	p.refilled(name)
	return true
}

// start starts a sandbox of the unit's newest content, with its program loaded if possible.
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

// noteFailure pauses a unit, or stops loading its program ahead. The caller holds the lock.
func (p *Pool) noteFailure(units *unitPool, name, key string, err error) {
	if errors.Is(err, ErrBuilding) {
		units.pause = time.Now().Add(poolTick)
		return
	}
	units.failures++
	if errors.Is(err, ErrNotReady) && units.stopLoadingAhead(key) {
		return
	}
	units.pause = time.Now().Add(fillPause)
	p.logger.Warn("no sandbox to wait for runs", "unit", name, "kind", fault.KindOf(err).String(), fault.LogAttr(err))
}

// next chooses the unit that gets the next sandbox, and an id for it. Units that ask for
// sandboxes come first, then the unit that was called last. name is "" when no unit wants
// one, or when it would disturb a run.
func (p *Pool) next() (name, id string) {
	running, backlog := p.busy()
	most := p.mostMemory()
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mayFill(now, running, len(backlog) > 0) {
		return "", ""
	}
	all, bytes := p.count()
	var best *unitPool
	for unit, units := range p.units {
		here := len(units.waiting) + units.coming
		short := here+units.returning(now) < units.wanted(now, p.opts.Idle, backlog[unit])
		served := len(backlog) > 0 && here >= backlog[unit]
		if !short || served || now.Before(units.pause) || bytes+units.bytes() > most {
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

// mayFill reports whether a sandbox can be started without disturbing a run. While runs wait
// in the queue, only those that they lack are started, and only beside processors that have no
// run. The caller holds the lock.
func (p *Pool) mayFill(now time.Time, running int, backlog bool) bool {
	idle := running < goruntime.NumCPU()
	if backlog {
		return idle
	}
	quiet := now.Sub(p.lastCall())
	return p.cold == 0 && quiet >= quietAfterCall && (idle || quiet >= quietTime)
}

// before reports whether the unit gets a sandbox before the other one.
func (s *unitPool) before(other *unitPool) bool {
	mine, theirs := len(s.waiting) < s.fixed, len(other.waiting) < other.fixed
	if mine != theirs {
		return mine
	}
	return s.lastCall().After(other.lastCall())
}

// count returns how many sandboxes wait or are being started, and how much memory they take.
func (p *Pool) count() (all int, bytes int64) {
	for _, units := range p.units {
		n := len(units.waiting) + units.coming
		all += n
		bytes += int64(n) * units.bytes()
	}
	return all, bytes
}

// lastCall returns the time of the latest call of any unit.
func (p *Pool) lastCall() (last time.Time) {
	for _, units := range p.units {
		if at := units.lastCall(); at.After(last) {
			last = at
		}
	}
	return last
}
