package pool

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Options bound the sandboxes that wait for runs. A zero field has the default that is
// named with it.
type Options struct {
	Size        int   // all together; 0: there is no pool
	MemoryBytes int64 // that they may take, as far as earlier runs tell; default 1 GiB
	// after so long without a call a unit has none any more, unless it asks for them; default 5 minutes
	Idle   time.Duration
	MaxAge time.Duration // after which one is replaced; default 1 hour
	Watch  time.Duration // how often it is looked at what loaded programs compute; default 10 seconds
}

func (o Options) withDefaults() Options {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 1 << 30
	}
	if o.Idle == 0 {
		o.Idle = 5 * time.Minute
	}
	if o.MaxAge == 0 {
		o.MaxAge = time.Hour
	}
	if o.Watch == 0 {
		o.Watch = 10 * time.Second
	}
	return o
}

// Source starts the sandboxes of a pool.
type Source interface {
	// Wants returns how many sandboxes should wait for a unit, however often it is called.
	Wants(u *unit.Unit) int
	// Start starts a sandbox of a unit, with its program loaded or not, and returns when it
	// waits for a run. After an error nothing of it is left.
	Start(ctx context.Context, u *unit.Unit, id string, loaded bool) (*Sandbox, error)
	// Remove removes everything that the engine has of a sandbox, by its label.
	Remove(ctx context.Context, id string) error
}

// Pool has the sandboxes that wait for runs. It starts none while that would disturb a run.
type Pool struct {
	opts   Options
	source Source
	logger *slog.Logger
	wake   chan struct{} // holds one word that there may be something to do
	world  run.World     // set by Run
	metrics

	mu      sync.Mutex
	units   map[string]*unitPool // by name
	filling map[string]bool      // sandboxes that are being started, by id
	taken   map[string]bool      // those that are some run's, by id
	left    map[string]time.Time // those that the engine may still have, by id, and since when
	cold    int                  // runs that start a container now
	emptied bool                 // nothing may wait any more
}

// New returns an empty pool.
func New(source Source, opts Options, logger *slog.Logger) *Pool {
	return &Pool{
		opts: opts.withDefaults(), source: source, logger: logger, wake: make(chan struct{}, 1), metrics: newMetrics(),
		units: map[string]*unitPool{}, filling: map[string]bool{}, taken: map[string]bool{},
		left: map[string]time.Time{},
	}
}

// Key names a unit's content, and whether it was uploaded: the operator may allow that less
// than the same content in a directory, and may have given it something else since.
func Key(u *unit.Unit) string {
	key := u.Name + "@" + u.Version
	if u.Policy.Change > 0 {
		key += "@" + strconv.Itoa(u.Policy.Change)
	}
	if u.Source == unit.FromUpload {
		key += "@" + u.Source
	}
	return key
}

// Acquire returns a sandbox that waits for a run of exactly this version of a unit, or nil.
// The run counts as a call of the unit in both cases.
func (p *Pool) Acquire(u *unit.Unit) *Sandbox {
	if p.opts.Size == 0 {
		return nil
	}
	key := Key(u)
	defer time.AfterFunc(quietAfterCall, p.nudge)
	p.mu.Lock()
	defer p.mu.Unlock()
	units := p.unit(u.Name)
	units.called(time.Now())
	for i, waiting := range units.waiting {
		if waiting.Key == key && waiting.Ready() {
			units.waiting = slices.Delete(units.waiting, i, i+1)
			p.taken[waiting.ID] = true
			units.expect(waiting, time.Now())
			p.hit(u.Name, time.Since(waiting.Since))
			units.hits++
			return waiting
		}
	}
	p.miss(u.Name)
	units.misses++
	return nil
}

// Release takes back a sandbox that waits for another run of its unit. It returns false if
// there is no room: then the caller discards the sandbox.
func (p *Pool) Release(name string, back *Sandbox) bool {
	_, backlog := p.busy()
	most := p.mostMemory()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	units := p.unit(name)
	delete(units.out, back.ID)
	all, bytes := p.count()
	enough := backlog[name] == 0 && len(units.waiting) >= units.wanted(now, p.opts.Idle, 0)
	full := enough || all >= p.opts.Size || bytes+units.bytes() > most
	if p.emptied || full || now.Sub(back.born) > p.opts.MaxAge {
		return false
	}
	back.meter = reading{turn: back.meter.turn + 1}
	units.waiting = append(units.waiting, back)
	delete(p.taken, back.ID)
	return true
}

// busy returns how many runs there are, and how many wait for a slot, by unit.
func (p *Pool) busy() (running int, backlog map[string]int) {
	p.mu.Lock()
	world := p.world
	p.mu.Unlock()
	if world == nil {
		return 0, nil
	}
	return world.Busy()
}

// mostMemory returns how much the waiting sandboxes may take: within what runs leave.
func (p *Pool) mostMemory() int64 {
	p.mu.Lock()
	world := p.world
	p.mu.Unlock()
	if world == nil {
		return p.opts.MemoryBytes
	}
	return min(p.opts.MemoryBytes, world.Room())
}

// Claimed tells the pool of sandboxes that an earlier process gave to a run.
func (p *Pool) Claimed(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.taken[id] = true
	}
}

// Forget tells the pool that a run no longer uses its sandboxes.
func (p *Pool) Forget(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.taken, id)
	}
}

// ColdStart tells the pool that a run starts a container of its own. The pool starts nothing
// until the returned function is called.
func (p *Pool) ColdStart() (done func()) {
	p.mu.Lock()
	p.cold++
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		p.cold--
		p.mu.Unlock()
		p.nudge()
	}
}

const (
	// lullTime is how long the end of a container waits for runs at the most, lullPoll how often
	// it looks.
	lullTime = 250 * time.Millisecond
	lullPoll = 5 * time.Millisecond
)

// AwaitLull returns when no run has a slot or waits for one, and after lullTime at the latest.
// The engine takes more of a processor for the end of a container than a short run does.
func (p *Pool) AwaitLull(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, lullTime)
	defer stop()
	tick := time.NewTicker(lullPoll)
	defer tick.Stop()
	for {
		if running, backlog := p.busy(); running == 0 && len(backlog) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Observation is what the pool learns about a unit from a run that has ended.
type Observation struct {
	Asked       bool  // the program asked for its run, so the next one can be loaded ahead
	MemoryBytes int64 // the peak; 0: not known
}

// Learn takes over the observation of a run that has ended.
func (p *Pool) Learn(u *unit.Unit, seen Observation) {
	if p.opts.Size == 0 {
		return
	}
	key := Key(u)
	p.mu.Lock()
	units := p.unit(u.Name)
	if seen.MemoryBytes > 0 {
		units.memory = seen.MemoryBytes
	}
	if seen.Asked && units.mute != key {
		units.asks = key
	}
	p.mu.Unlock()
	p.nudge()
}

func (p *Pool) unit(name string) *unitPool {
	u := p.units[name]
	if u == nil {
		u = &unitPool{}
		p.units[name] = u
	}
	return u
}

// Has reports whether the pool or a run has a sandbox.
func (p *Pool) Has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filling[id] || p.taken[id] {
		return true
	}
	for _, units := range p.units {
		if units.has(id) {
			return true
		}
	}
	return false
}

// Waiting returns the sandboxes that wait now.
func (p *Pool) Waiting() (all []*Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, units := range p.units {
		all = append(all, units.waiting...)
	}
	return all
}

// Pause stops the start of sandboxes of a unit until a time. The zero time ends the pause.
func (p *Pool) Pause(name string, until time.Time) {
	p.mu.Lock()
	p.unit(name).pause = until
	p.mu.Unlock()
	p.nudge()
}

// nudge makes Run check at once whether there is something to do.
func (p *Pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Discard removes sandboxes that the pool doesn't have any more.
func (p *Pool) Discard(ctx context.Context, gone ...*Sandbox) {
	var all sync.WaitGroup
	for _, waiting := range gone {
		all.Go(func() {
			if err := waiting.discard(ctx); errors.Is(err, runtime.ErrLeftBehind) {
				p.logger.Warn("waiting sandbox not removed", "sandbox", waiting.ID, fault.LogAttr(err))
				p.rememberLeft(waiting.ID)
			}
		})
	}
	all.Wait()
}

// empty removes all sandboxes of the pool. Run calls it at its end.
func (p *Pool) empty(ctx context.Context) {
	p.mu.Lock()
	p.emptied = true
	var gone []*Sandbox
	for _, units := range p.units {
		gone = append(gone, units.waiting...)
		units.waiting = nil
	}
	p.mu.Unlock()
	p.Discard(ctx, gone...)
	p.sweepLeft(ctx)
}
