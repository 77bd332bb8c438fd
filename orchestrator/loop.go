package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/runtime"
)

// loop leads runs from their acceptance until they are cleaned up: states, queue, retries and
// the tree of calls. A Service has a loop with a journal on disk, a Local one with a journal
// in memory.
type loop struct {
	opts       Options
	home       run.Home
	kinds      run.Kinds
	journal    journal
	store      *store.Store // the journal of a Service, and what it alone asks of it; nil: of a Local
	queue      *queue.Queue
	logger     *slog.Logger
	metrics    *metrics.Metrics
	recent     *metrics.Recent
	ledger     *ledger.Tree // of what runs spend on models
	modelCache models.Cache
	// findVersion returns a unit in a version that is kept; nil where no run is recovered.
	findVersion func(ctx context.Context, name, version string) (*unit.Unit, error)
	answers     answers // of people
	sessions    *turns.Registry
	schedules   *schedules.Scheduler // of a Service; nil: of a Local
	switches    switches
	durable     bool   // another process may go on with the runs
	kept        string // where directories of attempts go that are to be kept; "" is nowhere

	life   context.Context //nolint:containedctx // of the runs; its end detaches from them
	detach context.CancelCauseFunc
	begin  context.Context //nolint:containedctx // of what waits to begin; it ends with the admission
	hold   context.CancelCauseFunc
	jobs   sync.WaitGroup

	mu       sync.Mutex
	live     map[string]*job
	left     map[string]bool // runs that are the next process's
	closing  bool
	draining bool // calls of live runs are admitted all the same
}

// journal stores runs: a store.Store does so on disk, a memory.Journal until the process ends.
type journal interface {
	models.Journal
	// Insert, Save and Append return when everything is safe; see package store.
	Insert(ctx context.Context, r store.Run, key store.Key, events ...store.Event) error
	Save(ctx context.Context, r store.Run, events ...store.Event) error
	Append(ctx context.Context, run string, events ...store.Event) error
	AppendOnce(ctx context.Context, key store.Key, run string, events ...store.Event) (fresh bool, err error)
	Told(ctx context.Context, run, kind string, after int64, limit int) ([]store.Event, error)
	Run(ctx context.Context, id string) (store.Run, error)
	Runs(ctx context.Context, f store.Filter) (store.Page, error)
	ByKey(ctx context.Context, key string) (run, fingerprint string, err error)
	KeepStep(ctx context.Context, run string, step store.Step, events ...store.Event) error
	Steps(ctx context.Context, run string, after int64, limit int) ([]store.Step, error)
	SaveSession(ctx context.Context, session store.Session, run string, events ...store.Event) error
	SaveTurn(ctx context.Context, session store.Session, turn store.Run, events ...store.Event) error
	StepCounts(ctx context.Context, run string) (store.StepCounts, error)
}

// finder returns the unit with a name if the run may call it, else a NotFound fault.
type finder func(ctx context.Context, name string) (*unit.Unit, error)

// newLoop returns a loop that has started nothing. The caller sets journal and home before
// the first run.
func newLoop(opts Options) *loop {
	l := &loop{
		opts: opts, kinds: opts.Kinds, logger: opts.Logger, queue: queue.New(opts.Concurrency),
		metrics: metrics.New(), recent: metrics.NewRecent(), ledger: ledger.New(), live: map[string]*job{},
		left: map[string]bool{},
	}
	l.queue.SetMemory(opts.MemoryBytes)
	l.sessions = turns.New(turns.Options{
		Living: opts.Sessions, Dir: l.sessionPath, Save: l.saveSession,
		Cancel: l.cancelTurn, Logger: opts.Logger,
	})
	l.life, l.detach = context.WithCancelCause(context.Background())
	l.begin, l.hold = context.WithCancelCause(l.life)
	return l
}

func (l *loop) runPath(id string) string { return filepath.Join(l.home.Runs, id) }

// job returns the job of a run, or nil if this process has none for it.
func (l *loop) job(id string) *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live[id]
}

// jobsOf returns the jobs that are such.
func (l *loop) jobsOf(such func(*job) bool) []*job {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(l.live)), func(j *job) bool { return !such(j) })
}

// isLive reports whether this process has, or had at its end, a job for a run that goes on,
// or a session of that id.
func (l *loop) isLive(id string) bool {
	l.mu.Lock()
	live := l.live[id] != nil || l.left[id]
	l.mu.Unlock()
	return live || l.sessions.Find(id) != nil
}

// leave notes that the next process goes on with a run: a sweep that ends after the run's job
// doesn't take its container for a stray.
func (l *loop) leave(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left[id] = true
}

// register makes the job known, so that no sweep takes its files for strays.
func (l *loop) register(j *job) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isCall := j.Lineage.Parent != ""; l.closing && (!l.draining || !isCall) {
		return fault.New(fault.Unavailable, "the server is shutting down").WithHint("try again in a moment")
	}
	l.live[j.ID] = j
	l.jobs.Add(1)
	return nil
}

func (l *loop) unregister(j *job) {
	l.mu.Lock()
	delete(l.live, j.ID)
	l.mu.Unlock()
	j.models.Close()
	j.cancel(nil)
	close(j.gone)
	l.jobs.Done()
}

// running returns the number of jobs.
func (l *loop) running() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.live)
}

// shutdown stops the admission and waits for the running runs until ctx ends. With drain it
// also waits for the queued runs. The next process goes on with the others.
func (l *loop) shutdown(ctx context.Context, drain bool) {
	l.mu.Lock()
	l.closing, l.draining = true, drain
	l.mu.Unlock()
	if !drain {
		l.queue.Close()
		l.hold(runtime.ErrDetach)
	}
	idle := make(chan struct{})
	go func() {
		l.jobs.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		if left := l.running(); left > 0 {
			l.logger.Warn("runs are left to the next start", "runs", left)
		}
	}
	l.mu.Lock()
	l.draining = false
	l.mu.Unlock()
	l.queue.Close() // runs that this process leaves free slots: no run may begin with one of those
	l.detach(runtime.ErrDetach)
	<-idle
	l.sessions.Stop()
}

// openKinds gives the home to every kind. The home is locked by then.
func (l *loop) openKinds() error {
	for kind := range l.kinds.Each() {
		if opener, ok := kind.(run.Opener); ok {
			if err := opener.Open(l.home); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loop) closeKinds() (err error) {
	for kind := range l.kinds.Each() {
		if opener, ok := kind.(run.Opener); ok {
			err = errors.Join(err, opener.Close())
		}
	}
	return err
}

const (
	persistDelay = 100 * time.Millisecond
	persistMost  = 10 * time.Second
)

// persist repeats what has to be stored until it is, until ctx ends, or until the process detaches
// from its runs. What the store refuses is not tried again: it would be refused for ever.
func (l *loop) persist(ctx context.Context, operation, id string, do func() error) error {
	var refusal error
	err := l.repeat(ctx, operation, id, func() error {
		err := do()
		if isRefusal(err) {
			refusal, err = err, nil
		}
		return err
	})
	if refusal != nil {
		return refusal
	}
	return err
}

// isRefusal reports whether the store has looked at what it was given, and doesn't take it.
func isRefusal(err error) bool {
	return fault.Is(err, fault.TooLarge) || fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound)
}

// repeat repeats an operation until it succeeds, until ctx ends, or until the process detaches from
// its runs; it does it once in any case. Where no other process goes on with the runs, it tries once:
// the next process sweeps what is left.
func (l *loop) repeat(ctx context.Context, operation, id string, do func() error) error {
	if !l.durable {
		return do()
	}
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval, retry.Multiplier, retry.RandomizationFactor = persistDelay, persistMost,
		2, 0
	for {
		err := do()
		if err == nil {
			return nil
		}
		l.logger.Error("will try again", "operation", operation, "run", id, fault.LogAttr(err))
		select {
		case <-time.After(retry.NextBackOff()):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", operation, context.Cause(ctx))
		case <-l.life.Done():
			return fmt.Errorf("%s: %w", operation, context.Cause(l.life))
		}
	}
}

// waiting returns a context that also ends when the admission ends.
func (l *loop) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.begin, func() { cancel(context.Cause(l.begin)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
