// Package worker carries out runs for a server on another machine: it asks for them, runs them on an engine of its own,
// and tells how they end. It needs no address of its own.
//
//	Join (join.go)         enrols with an invitation, once
//	Worker.Run             connects, and goes on with what an earlier process held
//	Worker.follow          the server's orders (orders.go)
//	held.drive             carries out a run from its acceptance until nothing is left of it (held.go)
//	host                   what the run's kind has as its host (host.go); journal what survives a kill (journal.go)
//	forwarder              passes on what the program asks (forward.go)
//
// Nothing that happens to the connection or to this process ends a run: its container goes on, and the next process
// finds it. A run ends early only when the server says so, or says that its lease is void.
//
// It must not know how a server chooses, nor what a kind does.
//
// Its Go API may change with every release: see docs/stability.md.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Kind carries out runs of units with containers.
type Kind interface {
	run.Kind
	run.Opener
	run.Warmer
	run.Sweeper
	run.ImagePruner
	run.Measurer
	run.Conversant
	// Lives reports whether a run is a turn of a session whose program lives on between its turns.
	Lives(r *run.Run) bool
}

// Options are the settings of a Worker.
type Options struct {
	Home        string // for it alone; Join has made it
	Kind        Kind
	Version     string // of this program
	Slots       int
	MemoryBytes int64        // that all runs may take together; 0: 80 % of what the engine has
	Labels      []string     // what units may need of it
	Node        string       // the id of its machine's node in a Swarm; "": it is in none
	MinFreeDisk int64        // below it nothing new is taken
	Door        *egress.Door // by which programs reach hosts by name
	Images      *Images      // fetched from the server; nil: none are
	Logger      *slog.Logger
}

// Worker carries out runs for the server that its home has joined.
type Worker struct {
	opts     Options
	member   Membership
	owner    string
	link     *link
	units    *registry.Registry
	journal  journal
	sessions sessions
	logger   *slog.Logger
	lock     *safefs.LockFile
	disks    *runtime.Disks
	memory   int64
	hellos   int64       // number of the last wire.Hello
	leaving  atomic.Bool // nothing new is taken: the node is to be emptied
	recent   recent
	life     context.Context //nolint:containedctx // of the runs in this process; its end detaches from them
	letGo    context.CancelCauseFunc
	underway sync.WaitGroup

	mu   sync.Mutex
	held map[string]*held // by their nonces

	resting map[string]chan struct{} // closed when the session of the id has no container any more
}

// New locks the home of a worker that has joined, and reads what an earlier process held. The error is a Conflict fault
// where another process works in it.
func New(opts Options) (_ *Worker, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Worker{opts: opts, logger: opts.Logger, held: map[string]*held{}, resting: map[string]chan struct{}{}}
	w.life, w.letGo = context.WithCancelCause(context.Background())
	if w.member, err = ReadMembership(opts.Home); err != nil {
		return nil, err
	}
	w.lock, err = run.LockHome(opts.Home)
	if errors.Is(err, safefs.ErrLocked) {
		return nil, fault.Wrap(fault.Conflict, err, "another worker runs over %q", opts.Home).
			WithHint("stop it, or join with a data directory of its own: --data DIR")
	}
	if err != nil {
		return nil, err
	}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, w.lock.Close())
	}
	return w, nil
}

func (w *Worker) open() (err error) {
	home := w.opts.Home
	for _, dir := range []string{"bin", "runs", "cards", "leases", "pool", layout.Sessions} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			return run.StorageFault(err)
		}
	}
	if w.owner, err = run.OwnerOf(home); err != nil {
		return err
	}
	w.journal = journal{filepath.Join(home, "leases")}
	w.sessions = sessions{filepath.Join(home, layout.Sessions)}
	w.disks = runtime.NewDisks(w.opts.MinFreeDisk, home)
	if w.units, err = registry.New(registry.Options{
		Home: filepath.Join(home, "units"), MaxBytes: 16 << 30, MaxEntries: 1 << 20, Logger: w.logger,
	}); err != nil {
		return err
	}
	if w.link, err = newLink(w.member, w.logger); err != nil {
		return err
	}
	if w.opts.Images != nil {
		if err := w.opts.Images.open(w); err != nil {
			return err
		}
	}
	return w.opts.Kind.Open(run.Home{
		Dir: home, Runs: filepath.Join(home, "runs"), Owner: w.owner, Bin: filepath.Join(home, "bin"),
		Cards: filepath.Join(home, "cards"), Disks: w.disks,
	})
}

// Close lets go of what goes on: containers aren't stopped.
func (w *Worker) Close() error {
	w.letGo(runtime.ErrDetach)
	w.underway.Wait()
	return errors.Join(w.opts.Kind.Close(), w.lock.Close())
}

// Run takes runs until ctx ends. What goes on then goes on without this process: the next one finds it. On a node of a
// Swarm that is drained or removed it ends here first, and nothing new is taken. The error is an
// Unauthorized fault when the server has removed the worker: then everything of it is removed here, too.
func (w *Worker) Run(ctx context.Context) error {
	w.learnMemory(ctx)
	if err := w.recover(); err != nil {
		return err
	}
	told := ctx
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var beside sync.WaitGroup
	beside.Go(func() { w.awaitEnd(ctx, told, stop) })
	beside.Go(func() { w.sweep(ctx) })
	beside.Go(func() { w.opts.Kind.Warm(ctx, world{w}) })
	beside.Go(func() { w.renew(ctx) })
	err := w.follow(ctx)
	stop(err)
	if errors.Is(err, errRevoked) {
		w.voidAll()
		w.underway.Wait()
	}
	beside.Wait()
	return err
}

const (
	leaveTime = 2500 * time.Millisecond // to ask what an end means; the server asks its Swarm for 2 seconds
	emptyLook = 200 * time.Millisecond  // between two looks whether nothing is held any more
)

// awaitEnd has the worker end when it is told to. A Swarm tells that for a drain and for an update: at a drain the
// worker finishes what runs, for no process comes after this one.
func (w *Worker) awaitEnd(ctx, told context.Context, stop context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-told.Done():
	}
	defer stop(context.Cause(told))
	if !w.mayLeave(ctx) {
		return
	}
	w.leaving.Store(true)
	w.renewOnce(ctx)
	w.logger.Info("the node is to be emptied: runs end first", "runs", len(w.all()))
	for len(w.all()) > 0 && pause.For(ctx, emptyLook) == nil {
	}
	for _, id := range w.idle() { // they go on elsewhere, with what the server has of them
		if err := w.endSession(id, false); err != nil {
			w.logger.Warn("session not ended", "session", id, fault.LogAttr(err))
		}
	}
}

// mayLeave asks the server whether this worker's node is to be emptied. Without an answer it isn't.
func (w *Worker) mayLeave(ctx context.Context) bool {
	if w.opts.Node == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	var answer wire.Leaving
	if err := w.link.call(ctx, wire.Leave, wire.Held{}, &answer); err != nil {
		w.logger.Info("the server doesn't tell why this process is to end: the next one goes on", fault.LogAttr(err))
		return false
	}
	return answer.Finish
}

// learnMemory takes the part of the engine's memory for runs, where nobody has said how much.
func (w *Worker) learnMemory(ctx context.Context) {
	w.memory = w.opts.MemoryBytes
	if w.memory == 0 {
		w.memory = run.MemoryForRuns(w.opts.Kind.Memory(ctx))
	}
}

// recover goes on with what an earlier process held.
func (w *Worker) recover() error {
	entries, err := w.journal.read()
	if err != nil {
		return err
	}
	if err := w.clear(entries); err != nil {
		return err
	}
	for _, e := range entries {
		w.begin(newHeld(w, e))
	}
	return nil
}

// clear removes the directories of attempts that the journal doesn't know: they hadn't begun.
func (w *Worker) clear(entries []entry) error {
	runs := filepath.Join(w.opts.Home, "runs")
	dirs, err := os.ReadDir(runs)
	if err != nil {
		return run.StorageFault(err)
	}
	for _, dir := range dirs {
		known := func(e entry) bool { return e.Assignment != nil && e.Assignment.Lease == dir.Name() }
		if !slices.ContainsFunc(entries, known) {
			err = errors.Join(err, safefs.RemoveTree(filepath.Join(runs, dir.Name())))
		}
	}
	return run.StorageFault(err)
}

// begin has a lease carried out, beside the others.
func (w *Worker) begin(h *held) {
	w.mu.Lock()
	w.held[h.entry.Nonce] = h
	w.mu.Unlock()
	w.underway.Go(func() {
		h.drive()
		w.mu.Lock()
		delete(w.held, h.entry.Nonce)
		w.mu.Unlock()
	})
}

// pruneTime is how often images are removed that nobody needs any more.
const pruneTime = time.Hour

// sweep removes what belongs to no run of this worker, and from time to time the images of units that the server
// doesn't use any more.
func (w *Worker) sweep(ctx context.Context) {
	for _, h := range w.all() { // a container that waited has its own id, not that of the run which it got
		select {
		case <-h.knows:
		case <-ctx.Done():
			return
		}
	}
	w.sweepStrays(ctx)
	for {
		if err := w.prune(ctx); err != nil && ctx.Err() == nil {
			w.logger.Warn("images not removed", fault.LogAttr(err))
		}
		if pause.For(ctx, pruneTime) != nil {
			return
		}
	}
}

// prune removes versions of units, and images, that neither the server nor a run here needs.
func (w *Worker) prune(ctx context.Context) error {
	var used []*unit.Unit
	removed, err := w.opts.Kind.PruneImages(ctx, func() (_ []*unit.Unit, err error) {
		used, err = w.unitsInUse(ctx)
		return used, err
	}, false)
	if err == nil && w.opts.Images != nil {
		var fetched int
		fetched, err = w.pruneFetched(ctx, used)
		removed += fetched
	}
	if err != nil {
		return err
	}
	versions, err := w.units.Prune(ctx, func(name, version string) bool {
		is := func(u *unit.Unit) bool { return u.Name == name && u.Version == version }
		return slices.ContainsFunc(used, is) || slices.ContainsFunc(w.all(), func(h *held) bool {
			a := h.now().Assignment
			return a != nil && a.Unit.Name == name && a.Unit.Version == version
		})
	})
	if removed+versions > 0 {
		w.logger.Info("images pruned", "count", removed, "versions", versions)
	}
	return err
}

// pruneFetched removes images that were fetched. What is in use isn't known where the kind has no images.
func (w *Worker) pruneFetched(ctx context.Context, used []*unit.Unit) (removed int, err error) {
	if len(w.opts.Images.all()) == 0 {
		return 0, nil
	}
	if used == nil {
		if used, err = w.unitsInUse(ctx); err != nil {
			return 0, err
		}
	}
	return w.opts.Images.prune(ctx, used)
}

// unitsInUse returns the units that are here of those that the server uses, and those of runs here.
func (w *Worker) unitsInUse(ctx context.Context) ([]*unit.Unit, error) {
	var here, inUse wire.Used
	_, err := w.units.Prune(ctx, func(name, version string) bool {
		here.Units = append(here.Units, name+"@"+version)
		return true
	})
	if err == nil {
		err = w.link.call(ctx, wire.Units, here, &inUse)
	}
	if err != nil {
		return nil, err
	}
	used := w.underwayUnits()
	for _, one := range inUse.Units {
		name, version, _ := strings.Cut(one, "@")
		if u, err := w.units.Version(ctx, name, version); err == nil {
			used = append(used, u)
		} else if !fault.Is(err, fault.NotFound) {
			return nil, err
		}
	}
	return used, nil
}

// underwayUnits are the versions of units that runs here are of.
func (w *Worker) underwayUnits() (units []*unit.Unit) {
	for _, h := range w.all() {
		a := h.now().Assignment
		if a == nil {
			continue
		}
		if u, err := w.units.Version(context.Background(), a.Unit.Name, a.Unit.Version); err == nil {
			units = append(units, u)
		}
	}
	return units
}

// sweepStrays removes what belongs to no run of this worker.
func (w *Worker) sweepStrays(ctx context.Context) {
	err := w.opts.Kind.SweepStrays(ctx, func(id string) bool {
		return slices.ContainsFunc(w.all(), func(h *held) bool { return h.runID() == id }) ||
			slices.Contains(w.sessions.all(), id)
	})
	if err != nil && ctx.Err() == nil {
		w.logger.Warn("containers of no run not removed", fault.LogAttr(err))
	}
}

// all are the leases that this process carries out.
func (w *Worker) all() []*held {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*held, 0, len(w.held))
	for _, h := range w.held {
		all = append(all, h)
	}
	return all
}

// of returns a lease that is carried out; nil: there is none.
func (w *Worker) of(lease string) *held {
	for _, h := range w.all() {
		if h.lease() == lease {
			return h
		}
	}
	return nil
}

// isClosed reports whether nothing new is taken.
func (w *Worker) isClosed() bool { return w.leaving.Load() || w.disks.Room(0) != nil }

// holds is what the server is told that this worker holds.
func (w *Worker) holds() (held wire.Held) {
	held.Closed, held.Sessions = w.isClosed(), w.idle()
	for _, h := range w.all() {
		if lease := h.lease(); lease != "" {
			held.Leases = append(held.Leases, lease)
		} else {
			held.Nonces = append(held.Nonces, h.entry.Nonce)
		}
	}
	return held
}

// voidAll has everything removed.
func (w *Worker) voidAll() {
	for _, h := range w.all() {
		h.void()
		<-h.over
	}
	for _, id := range w.idle() {
		w.rest(id, true)
	}
}
