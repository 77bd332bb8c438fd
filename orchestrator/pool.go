package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/safefs"
)

// poolDir is where the directories of waiting sandboxes are, in a Service's home.
const poolDir = "pool"

// PoolOptions bound the sandboxes that wait for runs. A zero field has the default that is
// named with it.
type PoolOptions struct {
	Size        int           // all together; 0: there is no pool
	MemoryBytes int64         // that they may take, as far as earlier runs tell; default 1 GiB
	Idle        time.Duration // after so long without a call a unit has none any more, unless it asks for them; default 5 minutes
	MaxAge      time.Duration // after which one is replaced; default 1 hour
}

func (o PoolOptions) withDefaults() PoolOptions {
	setDefault(&o.MemoryBytes, 1<<30)
	setDefault(&o.Idle, 5*time.Minute)
	setDefault(&o.MaxAge, time.Hour)
	return o
}

// pool has sandboxes that were started before their runs are known: each serves one run, or
// as many as its unit says (see lease). Live calls come first: see next.
type pool struct {
	service *Service
	opts    PoolOptions
	logger  *slog.Logger
	wake    chan struct{} // holds one word that there may be something to do

	mu      sync.Mutex
	shelves map[string]*shelf    // by unit
	filling map[string]bool      // sandboxes that are being started, by id
	lent    map[string]bool      // those that are some run's, by id
	left    map[string]time.Time // those that the engine may still have, by id, and since when
	cold    int                  // runs that start a container now
	emptied bool                 // nothing may wait any more
}

func newPool(s *Service, opts PoolOptions) *pool {
	return &pool{
		service: s, opts: opts.withDefaults(), logger: s.logger, wake: make(chan struct{}, 1),
		shelves: map[string]*shelf{}, filling: map[string]bool{}, lent: map[string]bool{}, left: map[string]time.Time{},
	}
}

// take returns a sandbox that waits for a run of this content, or nil; either way the run
// counts as one that would like to have one.
func (p *pool) take(r *Run) *parked {
	if p.opts.Size == 0 || !parkable(r.req.Capsule) {
		return nil
	}
	unit, key := r.record.Unit, r.imageKey()
	defer time.AfterFunc(breath, p.nudge)
	p.mu.Lock()
	defer p.mu.Unlock()
	shelf := p.shelf(unit)
	shelf.called(time.Now())
	for _, waiting := range shelf.waiting {
		if waiting.key == key && waiting.waits() {
			shelf.waiting = slices.DeleteFunc(shelf.waiting, func(p *parked) bool { return p == waiting })
			p.lent[waiting.id] = true
			shelf.lent(waiting, time.Now())
			p.service.metrics.claimed(unit, time.Since(waiting.since))
			shelf.hits++
			return waiting
		}
	}
	p.service.metrics.missed(unit)
	shelf.misses++
	return nil
}

// lend remembers sandboxes that an earlier process gave to a run.
func (p *pool) lend(ids map[int]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.lent[id] = true
	}
}

// forget says that a run has nothing more to do with its sandboxes.
func (p *pool) forget(ids map[int]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.lent, id)
	}
}

// parkable reports whether a unit's sandboxes can be started before their runs are known.
// An isolation runtime may keep the init from reaching us.
func parkable(c *capsule.Capsule) bool { return c.Agent.Runtime == "" && c.Kind != capsule.KindRemote }

// starts says that a run starts a container of its own, until the returned function is called.
func (p *pool) starts() (done func()) {
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

// learn takes notice of a run that has ended: whether its program asked for its run, so that
// the next one can be loaded before there is any, and how much memory it took. An Agentic
// Unit's isn't: its arguments come with the run.
func (p *pool) learn(r *Run, asked bool) {
	if p.opts.Size == 0 {
		return
	}
	key := r.imageKey()
	p.mu.Lock()
	shelf := p.shelf(r.record.Unit)
	if r.record.Usage != nil {
		shelf.memory = r.record.Usage.PeakMemoryBytes
	}
	if asked && !r.isAU() && shelf.mute != key {
		shelf.asks = key
	}
	p.mu.Unlock()
	p.nudge()
}

func (p *pool) shelf(unit string) *shelf {
	s := p.shelves[unit]
	if s == nil {
		s = &shelf{}
		p.shelves[unit] = s
	}
	return s
}

// has reports whether a sandbox is the pool's.
func (p *pool) has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filling[id] || p.lent[id] {
		return true
	}
	for _, shelf := range p.shelves {
		if shelf.has(id) {
			return true
		}
	}
	return false
}

// nudge makes run look whether there is something to do.
func (p *pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// discard removes sandboxes that nobody needs any more.
func (p *pool) discard(ctx context.Context, gone []*parked) {
	var all sync.WaitGroup
	for _, waiting := range gone {
		all.Go(func() {
			if err := waiting.discard(ctx); errors.Is(err, runtime.ErrLeftBehind) {
				p.logger.Warn("waiting sandbox not removed", "sandbox", waiting.id, about(err))
				p.leave(waiting.id)
			}
		})
	}
	all.Wait()
}

// empty removes what the pool has. It is called when run has returned.
func (p *pool) empty(ctx context.Context) {
	p.mu.Lock()
	p.emptied = true
	var gone []*parked
	for _, shelf := range p.shelves {
		gone = append(gone, shelf.waiting...)
		shelf.waiting = nil
	}
	p.mu.Unlock()
	p.discard(ctx, gone)
	p.sweep(ctx)
}

// emptyPool removes the directories of sandboxes that waited in an earlier process. Their
// containers are found by their labels.
func (s *Service) emptyPool() error {
	if err := safefs.RemoveTree(s.path(poolDir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.MkdirAll(s.path(poolDir), 0o700)
}
