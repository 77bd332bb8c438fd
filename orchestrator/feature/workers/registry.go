package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// rows keep what is to be known of workers after a restart.
type rows interface {
	Save(ctx context.Context, w store.Worker) error
	List(ctx context.Context) ([]store.Worker, error)
	Remove(ctx context.Context, name string) error
}

// registry knows the workers. Who has a credential is what access.Tokens know; a worker that has never been here has
// nothing else.
type registry struct {
	f    *Feature
	rows rows

	mu    sync.Mutex
	all   map[string]*worker
	begun time.Time // since when workers can be heard; zero: they can't yet
	ended bool      // none can be any more

	images  images
	keepers keepers
}

// images are the versions of units whose images machines have, as far as this process has seen. The queue asks for them
// with its lock held.
type images struct {
	mu    sync.Mutex
	known map[string]bool
}

// mostImages is how many are known.
const mostImages = 100_000

func imageOf(machine string, u *unit.Unit) string { return machine + " " + u.Name + "@" + u.Version }

// has reports whether a machine has run a unit's version.
func (i *images) has(machine string, u *unit.Unit) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.known[imageOf(machine, u)]
}

// note notes that a machine has run a unit's version.
func (i *images) note(machine string, u *unit.Unit) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= mostImages {
		clear(i.known)
	}
	i.known[imageOf(machine, u)] = true
}

// worker is one of them. The registry's lock is held for its fields but box.
type worker struct {
	name    string
	drained bool
	about   wire.Hello
	seen    time.Time // when it was heard last; zero: never
	stream  *stream   // of its orders; nil: it is away
	box     outbox
}

// stream is one answer in which a worker gets its orders.
type stream struct {
	end  context.CancelCauseFunc
	over <-chan struct{}
}

func newRegistry(f *Feature, rows rows) *registry {
	return &registry{f: f, rows: rows, all: map[string]*worker{}, images: images{known: map[string]bool{}}}
}

// open reads which workers there were. Their machines take nothing before they are heard.
func (g *registry) open(ctx context.Context) error {
	known, err := g.rows.List(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	for _, row := range known {
		w := newWorker(row.Name)
		w.drained, w.seen = row.Drained, row.SeenAt
		_ = json.Unmarshal(row.About, &w.about) // it tells again what can't be read
		g.all[w.name] = w
		g.show(w)
	}
	return nil
}

func newWorker(name string) *worker {
	return &worker{name: name, box: newOutbox()}
}

// begin notes that workers can be heard from now on: whoever was there before has the whole grace.
func (g *registry) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun = time.Now()
}

// stop ends the streams, and those that still come.
func (g *registry) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, w := range g.all {
		if w.stream != nil {
			w.stream.end(errEnds)
		}
	}
}

// lateHello is the error of a Hello that comes when a later one has been here.
type lateHello struct {
	error
	last int64 // number of that
}

// connect begins a stream of orders in the place of an earlier one. The context ends with the stream. Of the leases
// that the worker holds and those that it should hold it is told, and their runs, before there is a new one.
func (g *registry) connect(
	ctx context.Context, name string, hello wire.Hello,
) (_ *worker, _ context.Context, leave func(), err error) {
	ctx, end := context.WithCancelCause(ctx)
	own := &stream{end, ctx.Done()}
	g.mu.Lock()
	w := g.all[name]
	if w == nil {
		w = newWorker(name)
		g.all[name] = w
	}
	if last := w.about.Number; hello.Number <= last {
		g.mu.Unlock()
		end(nil)
		return nil, nil, nil, &lateHello{errReplaced, last}
	}
	if w.stream != nil {
		w.stream.end(errReplaced)
	}
	if g.ended {
		end(errEnds)
	}
	g.f.leases.settle(w, hello.Held)
	w.about, w.seen, w.stream = hello, time.Now(), own
	w.about.Held = wire.Held{Closed: hello.Closed}
	g.show(w)
	g.mu.Unlock()
	g.keep(ctx, name)
	g.f.logger.Info("worker connected", "worker", name, "slots", hello.Slots, "version", hello.Version)
	return w, ctx, func() {
		end(nil)
		g.disconnect(name, own)
	}, nil
}

// disconnect notes that a stream has ended.
func (g *registry) disconnect(name string, own *stream) {
	g.mu.Lock()
	w := g.all[name]
	is := w != nil && w.stream == own
	if is {
		w.stream, w.seen = nil, time.Now()
		g.show(w)
	}
	g.mu.Unlock()
	if is {
		g.keep(g.f.process.Life, name)
		g.f.logger.Info("worker away", "worker", name)
	}
}

// suspect ends the stream of a worker that doesn't do what it was told: it takes nothing before it asks again.
func (g *registry) suspect(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.all[name]; w != nil && w.stream != nil {
		w.stream.end(errSilent)
		w.stream, w.seen = nil, time.Now()
		g.show(w)
	}
}

// show has the queue see a worker as it is. It is called with the lock held.
func (g *registry) show(w *worker) {
	g.keepers.set(w.name, !w.drained && g.f.nodeState(w) == "" && g.presenceOf(w) != lost)
	g.f.process.Machines.SetMachine(w.name, g.f.machineOf(w))
}

// showAll has the queue see all workers as they are.
func (g *registry) showAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.all {
		g.show(w)
	}
}

// keep stores what is to be known of a worker after a restart.
func (g *registry) keep(ctx context.Context, name string) {
	g.mu.Lock()
	w := g.all[name]
	if w == nil {
		g.mu.Unlock()
		return
	}
	about, err := json.Marshal(w.about)
	row := store.Worker{Name: name, Drained: w.drained, About: about, SeenAt: w.seen}
	g.mu.Unlock()
	if err == nil {
		err = g.rows.Save(context.WithoutCancel(ctx), row)
	}
	if err != nil {
		g.f.logger.Error("worker not stored", "worker", name, fault.LogAttr(err))
	}
}

// hear notes that a worker is there.
func (g *registry) hear(name string, closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.all[name]
	if w == nil {
		return
	}
	w.seen = time.Now()
	if w.about.Closed != closed {
		w.about.Closed = closed
		g.show(w)
	}
}

// find returns a worker; nil: there is none.
func (g *registry) find(name string) *worker {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[name]
}

// nodeOf is the node that a worker tells to be on.
func (g *registry) nodeOf(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.all[name]; w != nil {
		return w.about.Node
	}
	return ""
}

// presence is how a worker is there.
type presence uint8

const (
	there presence = iota
	away           // since a short time
	lost           // for longer than the grace, or removed
)

// presence returns how a worker is there, by its name.
func (g *registry) presence(name string) presence {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.all[name]
	if w == nil {
		return lost
	}
	return g.presenceOf(w)
}

// presenceOf is presence with the lock held.
func (g *registry) presenceOf(w *worker) presence {
	heard := w.seen
	if heard.Before(g.begun) {
		heard = g.begun
	}
	switch silent := time.Since(heard); {
	case w.stream != nil && silent < wire.Lease:
		return there
	case g.begun.IsZero() || silent < g.f.opts.Grace:
		return away
	}
	return lost
}

// gone returns a channel that is closed when the stream of a worker ends that it has now.
func (g *registry) gone(name string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.all[name]; w != nil && w.stream != nil {
		return w.stream.over
	}
	return already()
}

var (
	errReplaced = fault.New(fault.Conflict, "the worker has asked again")
	errSilent   = fault.New(fault.Unavailable, "the worker didn't take a run that it was offered")
	errEnds     = fault.New(fault.Unavailable, "the server ends").WithHint("try again in a moment")
	errRemoved  = fault.New(fault.Unauthorized, "the worker was removed").WithHint("`aod worker add` invites it again")
)

// List returns the workers by their names.
func (f *Feature) List(context.Context) ([]api.Worker, error) {
	tokens, err := f.opts.Credentials.Workers()
	if err != nil {
		return nil, err
	}
	all := make([]api.Worker, 0, len(tokens))
	for _, token := range tokens {
		all = append(all, f.shown(token))
	}
	slices.SortFunc(all, func(a, b api.Worker) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// shown is what is told of a worker.
func (f *Feature) shown(token access.Token) api.Worker {
	g := f.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.all[token.Name]
	told := api.Worker{Name: token.Name, State: api.WorkerInvited, ExpiresAt: api.TimeOrNil(token.Expires)}
	if w == nil || w.seen.IsZero() {
		return told
	}
	told.State = stateOf[g.presenceOf(w)]
	told.Drained, told.Version, told.Slots, told.MemoryBytes = w.drained, w.about.Version, w.about.Slots,
		w.about.MemoryBytes
	told.DiskFull = w.about.Closed
	told.Node = f.nodeState(w)
	told.Labels, told.SeenAt = f.labelsOf(w), api.TimeOrNil(w.seen.UTC())
	told.Running = f.process.Machines.Running(w.name)
	return told
}

var stateOf = map[presence]api.WorkerState{
	there: api.WorkerConnected, away: api.WorkerAway, lost: api.WorkerLost,
}

// Add invites a worker: its machine joins with what is returned, once; a node of the Swarm that had the worker may join
// again with what all nodes have.
func (f *Feature) Add(_ context.Context, name string) (api.WorkerJoin, error) {
	token, expires, err := f.opts.Credentials.AddWorker(name, time.Now())
	if err == nil && f.opts.Swarm != nil {
		err = f.opts.Swarm.Invite(name)
	}
	join := api.WorkerJoin{Name: name, Home: f.process.Home.Owner, Token: token, ExpiresAt: expires}
	if f.opts.Pins != nil {
		join.Pins = f.opts.Pins()
	}
	return join, err
}

// Drain has a worker take nothing new, or again what there is. What runs there goes on.
func (f *Feature) Drain(ctx context.Context, name string, drained bool) (api.Worker, error) {
	member, err := f.member(name)
	if err != nil {
		return api.Worker{}, err
	}
	g := f.registry
	g.mu.Lock()
	if g.all[name] == nil {
		g.all[name] = newWorker(name)
	}
	g.all[name].drained = drained
	g.show(g.all[name])
	g.mu.Unlock()
	g.keep(ctx, name)
	return f.shown(member), nil
}

// member returns the credential of a worker, or a NotFound fault.
func (f *Feature) member(name string) (access.Token, error) {
	all, err := f.opts.Credentials.Workers()
	if err != nil {
		return access.Token{}, err
	}
	if at := slices.IndexFunc(all, func(t access.Token) bool { return t.Name == name }); at >= 0 {
		return all[at], nil
	}
	return access.Token{}, fault.New(fault.NotFound, "there is no worker %s", fault.Quote(name)).
		WithHint("`aod worker ls` lists them")
}

// Remove has a worker be none any more: its credential opens nothing, and the runs that it has are lost.
func (f *Feature) Remove(ctx context.Context, name string) error {
	if f.opts.Swarm != nil { // before its credential opens nothing, or it would come back at once
		if err := f.opts.Swarm.Remove(name); err != nil {
			return err
		}
	}
	if err := f.opts.Credentials.RemoveWorker(name); err != nil {
		return err
	}
	return f.forget(ctx, name)
}

// forget ends all that there is of a worker.
func (f *Feature) forget(ctx context.Context, name string) error {
	g := f.registry
	g.mu.Lock()
	if w := g.all[name]; w != nil && w.stream != nil {
		w.stream.end(errRemoved)
	}
	delete(g.all, name)
	g.keepers.set(name, false)
	g.mu.Unlock()
	f.process.Machines.RemoveMachine(name)
	f.leases.wake(name)
	return g.rows.Remove(context.WithoutCancel(ctx), name)
}

// outbox has the orders for a worker that it hasn't done yet, by a key of each.
type outbox struct {
	mu     sync.Mutex
	orders map[string]numbered
	last   int64         // number
	news   chan struct{} // has one when there may be new ones
}

// numbered is an order with a number that no other one has, also not one that had its key before.
type numbered struct {
	wire.Order
	number int64
}

func newOutbox() outbox { return outbox{orders: map[string]numbered{}, news: make(chan struct{}, 1)} }

// put has a worker get an order, over this stream or the next ones, until it is dropped.
func (w *worker) put(key string, order wire.Order) {
	if w == nil { // it was removed
		return
	}
	w.box.mu.Lock()
	w.box.last++
	w.box.orders[key] = numbered{order, w.box.last}
	w.box.mu.Unlock()
	select {
	case w.box.news <- struct{}{}:
	default:
	}
}

// drop has an order be done.
func (w *worker) drop(key string) {
	if w == nil {
		return
	}
	w.box.mu.Lock()
	defer w.box.mu.Unlock()
	delete(w.box.orders, key)
}

// unsent returns the orders whose numbers aren't among those that were sent, and notes them.
func (b *outbox) unsent(sent map[string]int64) (orders []wire.Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(sent, func(key string, _ int64) bool { _, is := b.orders[key]; return !is })
	for _, key := range slices.Sorted(maps.Keys(b.orders)) {
		if order := b.orders[key]; sent[key] != order.number {
			sent[key] = order.number
			orders = append(orders, order.Order)
		}
	}
	return orders
}

// keepVoid forgets the orders to remove leases that the worker doesn't hold any more.
func (b *outbox) keepVoid(held []string) {
	b.forget(func(o wire.Order) bool { return o.Void != "" && !slices.Contains(held, o.Void) })
}

// forget forgets orders that are done.
func (b *outbox) forget(done func(wire.Order) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.orders, func(_ string, o numbered) bool { return done(o.Order) })
}
