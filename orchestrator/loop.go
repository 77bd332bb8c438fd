package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/store/memory"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
)

// loop leads runs from their acceptance until they are cleaned up: states, queue, retries and
// the tree of calls. A Service has a loop with a journal on disk, a Local one with a journal
// in memory.
type loop struct {
	opts      Options
	home      run.Home
	kinds     run.Kinds
	journal   journal
	store     *store.Store // the journal of a Service, and what it alone asks of it; nil: of a Local
	runs      *records.Reader
	queue     *queue.Queue
	logger    *slog.Logger
	metrics   *metrics.Metrics
	recent    *metrics.Recent
	questions *questions.Registry // of a Service; nil: of a Local
	sessions  *turns.Registry
	rules     units.Rules
	switches  units.Switches
	placer    feature.Placer // nil: all runs go on here
	durable   bool           // another process may go on with the runs
	kept      string         // where directories of attempts go that are to be kept; "" is nowhere

	life          context.Context //nolint:containedctx // of the runs; its end detaches from them
	detach        context.CancelCauseFunc
	begin         context.Context //nolint:containedctx // of what waits to begin; it ends with the admission
	stopAdmission context.CancelCauseFunc
	jobs          *jobs
}

// journal stores runs, by what is stored of them: a store.Store does so on disk, a memory.Journal until the
// process ends.
type journal struct {
	Runs       runStore
	Events     eventStore
	Keys       keys.Rows
	Steps      stepStore
	Sessions   turns.Rows
	ModelCalls feature.ModelCalls
}

func onDisk(s *store.Store) journal {
	return journal{
		Runs: s.Runs, Events: s.Events, Keys: s.Keys, Steps: s.Steps, Sessions: s.Sessions, ModelCalls: s.ModelCalls,
	}
}

func inMemory() journal {
	m := memory.New()
	return journal{
		Runs: m.Runs, Events: m.Events, Keys: m.Keys, Steps: m.Steps, Sessions: m.Sessions, ModelCalls: m.ModelCalls,
	}
}

// runStore returns from Insert and Save when everything is safe; see package store. So do the others.
type runStore interface {
	records.Rows
	Insert(ctx context.Context, r store.Run, key store.Key, events ...store.Event) error
	Save(ctx context.Context, r store.Run, events ...store.Event) error
}

type eventStore interface {
	store.Teller
	keys.Events
}

type stepStore interface {
	records.StepRows
	Keep(ctx context.Context, run string, step store.Step, events ...store.Event) error
}

// newLoop returns a loop that has started nothing. The caller sets journal and home before
// the first run.
func newLoop(opts Options) *loop {
	l := &loop{
		opts: opts, kinds: opts.Kinds, logger: opts.Logger, queue: queue.New(opts.Concurrency),
		metrics: metrics.New(), recent: metrics.NewRecent(), jobs: newJobs(),
	}
	l.rules = units.Rules{
		Kinds: opts.Kinds, Slots: opts.Concurrency, Limits: opts.Limits, MaxTimeout: opts.MaxTimeout,
		Retries: opts.Retries,
	}
	var ends func(run.Conversant) run.Conversant
	for _, f := range opts.Features {
		if placer, is := f.(feature.Placer); is {
			l.placer, ends = placer, placer.Conversant
		}
	}
	l.rules.Set(units.Given{Settings: opts.Units, Bounds: opts.Bounds})
	l.queue.SetMemory(opts.MemoryBytes)
	l.sessions = turns.New(turns.Options{
		Kinds: opts.Kinds, Ends: ends, Living: opts.Sessions, Save: l.saveSession, Logger: opts.Logger,
		Dir:    func(id string) string { return filepath.Join(l.home.Dir, layout.Sessions, id) },
		Cancel: func(run, reason string) { _, _ = l.Cancel(l.life, run, reason) }, // unless it has ended
	})
	l.life, l.detach = context.WithCancelCause(access.WithServer(context.Background()))
	l.begin, l.stopAdmission = context.WithCancelCause(l.life)
	return l
}

// readRuns has the runs read, whose journal and home are known by then.
func (l *loop) readRuns(questions records.Questions) *records.Reader {
	l.runs = records.NewReader(records.Options{
		Rows: l.journal.Runs, Steps: l.journal.Steps, Kinds: l.kinds, Runs: l.home.Runs, Live: l.jobs.heard,
		Questions: questions, Waits: waitsIn(l.queue, l.jobs),
	})
	return l.runs
}

func (l *loop) runPath(id string) string { return filepath.Join(l.home.Runs, id) }

// room returns a fault where need more bytes would leave less than MinFreeDisk.
func (l *loop) room(need int64) error { return l.home.Disks.Room(need) }

// inUse returns the versions of units that runs and sessions go on with, as name@version, and the units of the runs.
func (l *loop) inUse() (versions map[string]bool, used []*unit.Unit) {
	versions = map[string]bool{}
	for _, known := range l.sessions.All() {
		row := known.Row()
		versions[row.Unit+"@"+row.Version] = true
	}
	return versions, l.jobs.inUse(versions)
}

// isLive reports whether this process has, or had at its end, a job for a run that goes on,
// or a session of that id.
func (l *loop) isLive(id string) bool { return l.jobs.has(id) || l.sessions.Find(id) != nil }

func (l *loop) unregister(j *job) {
	l.jobs.remove(j)
	l.opts.Traces.End(j.ID)
	j.eachPart(feature.Part.Close)
	if l.questions != nil {
		l.questions.Forget(j.ID)
	}
	j.cancel(nil)
	close(j.live.Gone)
	l.jobs.going.Done()
}

// shutdown stops the admission and waits for the running runs until ctx ends. With drain it
// also waits for the queued runs. The next process goes on with the others.
func (l *loop) shutdown(ctx context.Context, drain bool) {
	l.jobs.close(drain)
	if !drain {
		l.queue.Close()
		l.stopAdmission(runtime.ErrDetach)
	}
	idle := make(chan struct{})
	go func() {
		l.jobs.going.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		if left := l.jobs.count(); left > 0 {
			l.logger.Warn("runs are left to the next start", "runs", left)
		}
	}
	l.jobs.close(false)
	l.queue.Close() // runs that this process leaves free slots: no run may begin with one of those
	l.detach(runtime.ErrDetach)
	<-idle
	l.sessions.Stop()
}

// initFeatures gives the features what they need of this process. It has its journal by then.
func (l *loop) initFeatures(process feature.Process) error {
	process.Life, process.Home, process.PayloadBytes, process.Kinds = l.life, l.home, l.opts.PayloadBytes, l.kinds
	process.Events, process.ModelCalls, process.Store = l.journal.Events, l.journal.ModelCalls, l.store
	process.Machines = l.queue
	process.Runs, process.Cancel, process.Logger = l.runs, l.Cancel, l.logger
	for _, f := range l.opts.Features {
		if needs, ok := f.(feature.Initializer); ok {
			if err := needs.Init(process); err != nil {
				return err
			}
		}
	}
	return nil
}

// saveSession stores a session as it is now.
func (l *loop) saveSession(row store.Session) error {
	return l.persist(l.life, "save session", row.ID, func() error {
		err := l.journal.Sessions.Save(context.WithoutCancel(l.life), row, "")
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	})
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
