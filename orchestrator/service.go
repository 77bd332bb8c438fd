package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/audit"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/figures"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/quotas"
	"github.com/agent-on-demand/aod/orchestrator/readiness"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/retention"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/signins"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
)

// Service is an orchestrator that outlives its process: what it has accepted is stored
// before it is acted on, and the next Service in the same home goes on with it.
//
//	Home/lock           held while a Service lives
//	Home/aod.db         the store
//	Home/bin/           the installed init
//	Home/spool/ID/      files that are being received
//	Home/pool/ID/       sandboxes that wait for a run
//	Home/runs/ID/input/ the input files of a run, output/ its output files, log.jsonl
//	Home/runs/ID/N/     its attempt number N, while that goes on
//	Home/sessions/ID/   what a session that isn't over has beside its turns
//	Home/schedules/ID/  files that each run of a schedule gets
//	Home/modelcache/    answers of models that units want again
//	Home/units/         every version of every unit, see package registry
type Service struct {
	*loop
	Runs      *records.Reader
	Feed      *records.Feed
	News      *records.News
	Files     *records.Files
	Flows     *records.Flows
	Sessions  *turns.Sessions
	Questions *questions.Registry
	Units     *units.Catalogue
	Figures   *figures.Figures
	Quotas    *quotas.Quotas
	Retention *retention.Retention
	Resends   *keys.Resends
	Signins   *signins.Registry
	Audit     *audit.Log

	registry *prometheus.Registry
	lock     *safefs.LockFile
	opened   time.Time
	tasks    sync.WaitGroup // sweeping, warming, recovering and probing
	started  atomic.Bool

	readiness readiness.Readiness
}

// NewService locks a home, opens its store and gives the home to the kinds. No run goes on
// before Start. If another Service holds the home, the error is a Conflict fault.
func NewService(opts Options) (_ *Service, err error) {
	opts = opts.withDefaults()
	if opts.Home, err = filepath.Abs(opts.Home); err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	s := &Service{loop: newLoop(opts), opened: time.Now()}
	s.durable = true
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.openHome(); err != nil {
		return nil, err
	}
	if err := s.kinds.Open(s.home); err != nil {
		return nil, err
	}
	if s.store, err = store.Open(s.path(layout.Database), store.Options{
		Logger: s.logger, NotEmpty: s.hasRuns(), AroundCommit: opts.AroundCommit,
	}); err != nil {
		return nil, err
	}
	s.journal = onDisk(s.store)
	if err := s.makeRooms(); err != nil {
		return nil, err
	}
	s.Retention.Compact()
	if err := s.initFeatures(feature.Process{
		Library: s.Files, Gate: s, Units: s.Units, Submissions: s, Teams: s.opts.Teams,
		InUse: func(ctx context.Context) ([]*unit.Unit, error) { return s.Retention.UnitsInUse(ctx) },
	}); err != nil {
		return nil, err
	}
	return s, nil
}

// makeRooms makes what the Service has beside the loop. The store is open by then.
func (s *Service) makeRooms() (err error) {
	s.Figures = figures.New(figures.Options{
		Store: s.store, Queue: s.queue, Recent: s.recent, Sessions: s.sessions, Kinds: s.kinds,
		Features: s.opts.Features, Slots: s.opts.Concurrency, Home: s.opts.Home, Version: s.opts.Version,
		Teams: s.opts.Teams,
	})
	s.Quotas = quotas.New(quotas.Options{
		Queue: s.queue, Sessions: s.sessions, Runs: s.store.Runs, Features: s.opts.Features,
	})
	s.Quotas.Set(s.opts.Quotas)
	s.registry = s.metrics.Registry(s.Figures.Now, s.Figures.Collectors()...)
	s.Questions = questions.New(questions.Options{
		Questions: s.store.Questions, Admits: s.Admits, Persist: s.persist,
		News: func(id string) {
			if j := s.jobs.get(id); j != nil {
				j.live.News.Notify()
			}
		},
		StateDir: func(id string) string { return filepath.Join(s.runPath(id), layout.State) },
		Refused: func(ctx context.Context, team, id string) {
			s.Audit.Refused(ctx, audit.Refusal{
				Team: team, Verb: "answer", Noun: "question", Object: id, Result: audit.Forbidden,
			})
		},
	})
	s.questions = s.Questions
	s.Units, err = units.New(units.Options{
		Home: s.path("units"), Sources: s.opts.Sources, Bundled: s.opts.Bundled,
		Switched: s.store.Units, Feed: s.store.Feed, Rules: &s.rules, Switches: &s.switches, Admits: s.Admits,
		Status: s.Figures.OfUnit, Live: s.jobs.ofUnit, Met: s.metrics.UnitMet,
		Teams: s.opts.Teams, Audit: s.store.Audits.Did, Logger: s.logger,
	})
	if err != nil {
		return err
	}
	s.Runs, s.News = s.readRuns(s.Questions), records.NewNews(s.store.Feed, s.rules.Shown, s.Questions.Names)
	s.Feed, s.Files = records.NewFeed(s.Runs, s.store), records.NewFiles(s.Runs, s.opened)
	s.Flows = records.NewFlows(s.Runs, s.store, s.Units)
	s.Sessions = turns.NewSessions(s.sessions, turns.SessionsOptions{
		Home: s.opts.Home, Store: s.store, Files: s.Files, Units: s.Units, Admits: s.Admits, Permits: s.permits,
	})
	s.Resends = keys.NewResends(s.Runs, s.store, s.Questions)
	s.Retention = s.retain()
	s.Signins = signins.New(s.store.Signins, s.home.Owner)
	s.Audit = audit.New(audit.Options{Rows: s.store.Audits, Home: s.opts.Home, Age: s.opts.AuditAge, Logger: s.logger})
	return nil
}

// FeatureOf returns the feature of a type that takes part in the runs of a Service, if there is one.
func FeatureOf[F feature.Feature](s *Service) (found F, is bool) {
	for _, f := range s.opts.Features {
		if found, is = f.(F); is {
			return found, true
		}
	}
	return found, false
}

// retain returns what keeps to the operator's settings of retention.
func (s *Service) retain() *retention.Retention {
	return retention.New(retention.Options{
		Home: s.opts.Home, Runs: s.home.Runs, Store: s.store, Units: s.Units, Sessions: s.Sessions, Kinds: s.kinds,
		InUse: s.inUse, Gone: s.jobs.awaitGone, Undamaged: s.undamaged, Age: s.opts.RetentionAge, Ages: s.Quotas.Ages,
		Bytes:    s.opts.RetentionSize,
		Interval: s.opts.SweepInterval, MinFreeDisk: s.opts.MinFreeDisk, Opened: s.opened, Logger: s.logger,
	})
}

func (s *Service) openHome() (err error) {
	for _, dir := range []string{"", "bin", "runs", "spool", "units", layout.Sessions} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return fault.Wrap(fault.Unavailable, err, "the data directory %q can't be made", s.opts.Home).
				WithHint("name another one with --data DIR or AOD_DATA")
		}
	}
	s.lock, err = run.LockHome(s.opts.Home)
	if errors.Is(err, safefs.ErrLocked) {
		return fault.Wrap(fault.Conflict, err, "another server runs over %q", s.opts.Home).
			WithHint("stop it, or give this one a data directory of its own with --data DIR")
	}
	if err != nil {
		return fmt.Errorf("lock home: %w", err)
	}
	s.home = run.Home{
		Dir: s.opts.Home, Runs: s.path("runs"), Bin: s.path("bin"), Cards: s.path("cards"),
		Disks: runtime.NewDisks(s.opts.MinFreeDisk, s.opts.Home),
	}
	if s.home.Owner, err = run.OwnerOf(s.opts.Home); err != nil {
		return err
	}
	return s.emptySpool()
}

// Configuration is what can be changed while a Service runs: see Options.
type Configuration struct {
	Units  units.Given
	Quotas quotas.Given
}

// Configure has other settings hold for what is begun from now on.
func (s *Service) Configure(c Configuration) {
	s.rules.Set(c.Units)
	s.Quotas.Set(c.Quotas)
}

// emptySpool removes files that an earlier process received only in part.
func (s *Service) emptySpool() error {
	entries, err := os.ReadDir(s.path("spool"))
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.path("spool"), entry.Name())))
	}
	return err
}

func (s *Service) path(rel string) string { return filepath.Join(s.opts.Home, rel) }

// Start recovers every run that an earlier Service did not finish, and admits new runs. It
// returns when all recovered runs have a job; the engine need not answer by then. Over a
// damaged store it changes nothing, and what can be read is: whoever repairs it finds all as it
// was.
func (s *Service) Start(ctx context.Context) error {
	ctx = access.WithServer(ctx)
	left, err := s.store.Runs.Unfinished(ctx)
	if s.store.Damaged() {
		s.started.Store(true)
		s.logger.Error("orchestrator started for reading only", fault.LogAttr(s.store.Health(ctx)))
		return nil
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if err := errors.Join(s.Units.Restore(ctx), s.Sessions.Restore(ctx)); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	s.Retention.HoldAge(ctx)
	jobs, err := newRecovery(s, left).all(ctx, left)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		j.goOn()
	}
	s.jobs.cancelOrphans()
	s.sessions.GoOn()
	s.tasks.Go(func() { strays{s}.remove(s.life) })
	if s.opts.MemoryBytes == 0 {
		s.tasks.Go(func() { s.learnMemory(s.life) })
	}
	s.tasks.Go(func() { s.Retention.Run(s.life) })
	s.tasks.Go(func() { s.Audit.Run(s.life) })
	disks := s.home.Disks
	s.tasks.Go(func() { disks.Watch(s.life) })
	for kind := range s.kinds.Each() {
		if warmer, ok := kind.(run.Warmer); ok {
			s.tasks.Go(func() { warmer.Warm(s.begin, world{s}) })
		}
	}
	s.started.Store(true)
	s.tasks.Go(func() { s.meetUnits(s.begin) })
	s.tasks.Go(func() { s.tellUnits(s.life) })
	for _, f := range s.opts.Features {
		if runner, ok := f.(feature.Runner); ok {
			s.tasks.Go(func() { runner.Run(s.life) })
		}
	}
	s.logger.Info("orchestrator started", "recovered", len(left))
	return nil
}

// meetUnits begins the counts of the units that there are.
func (s *Service) meetUnits(ctx context.Context) {
	for _, u := range (world{s}).Units(ctx) {
		s.metrics.UnitMet(u.Name)
	}
}

// unitsPause is the time between two looks at the directories of units.
const unitsPause = 5 * time.Second

// tellUnits tells those who follow the news of units that changed in their directories.
func (s *Service) tellUnits(ctx context.Context) {
	for pause.For(ctx, unitsPause) == nil {
		if s.News.IsFollowed() && s.undamaged(ctx) == nil {
			s.Units.Tell(ctx)
		}
	}
}

// world implements run.World for the kinds.
type world struct{ *Service }

// Units implements run.World.
func (w world) Units(ctx context.Context) []*unit.Unit {
	all, _ := w.Service.Units.Usable(access.WithServer(ctx)) // an error comes with the end of ctx
	return all
}

// Unit implements run.World.
func (w world) Unit(ctx context.Context, name string) (*unit.Unit, error) {
	return w.Service.Units.Get(ctx, name)
}

// Busy implements run.World.
func (w world) Busy() (running int, waiting map[string]int) { return w.queue.Counts() }

// Shutdown stops the admission and waits for the running runs until ctx ends. With drain it
// also waits for the queued runs. The next Service goes on with the others: their containers
// are not stopped.
func (s *Service) Shutdown(ctx context.Context, drain bool) {
	s.shutdown(ctx, drain)
	s.tasks.Wait()
}

// Close stops the Service and unlocks its home. Without a Shutdown before, it doesn't wait
// for runs.
func (s *Service) Close() error {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	s.Shutdown(over, false)
	return s.close()
}

// close closes what NewService opened, also after half of it.
func (s *Service) close() error {
	err := s.kinds.Close()
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// hasRuns reports whether there are files of runs, and so runs in the store.
func (s *Service) hasRuns() bool {
	entries, err := os.ReadDir(s.path("runs"))
	return err == nil && len(entries) > 0
}

// Admits returns a fault while the service stops, has not begun, can't store, or has too
// little disk.
func (s *Service) Admits(ctx context.Context) error {
	if s.ShuttingDown() {
		return fault.New(fault.Unavailable, "the server is starting or shutting down").WithHint("try again in a moment")
	}
	if err := s.store.Health(ctx); err != nil {
		return err
	}
	return s.room(0)
}

// ShuttingDown implements feature.Runs: it is true as well before the Service has started.
func (s *Service) ShuttingDown() bool {
	return s.jobs.isClosing() || !s.started.Load()
}

// Ready returns a fault with the reason why the service can't take runs now, or nil. The
// kinds are asked at most once a second: an engine under load is slow to answer, and every
// further question makes it slower.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.Admits(ctx); err != nil {
		return err
	}
	return s.readiness.Get(ctx, s.probe)
}

// probe starts to ask the kinds, unless the service shuts down.
func (s *Service) probe(answered func(error)) bool {
	return s.jobs.whileOpen(func() {
		s.tasks.Go(func() {
			ctx, cancel := context.WithTimeoutCause(s.life, readiness.ProbeTime, runtime.Silent(readiness.ProbeTime))
			defer cancel()
			answered(s.askKinds(ctx))
		})
	})
}

func (s *Service) askKinds(ctx context.Context) error {
	for kind := range s.kinds.Each() {
		if sweeper, ok := kind.(run.Sweeper); ok {
			if err := sweeper.Ready(ctx); err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
		}
	}
	return nil
}

// Permits returns a fault if a unit can't be run, whatever its input is.
func (s *Service) Permits(ctx context.Context, name string) error {
	u, err := s.Units.Get(ctx, name)
	if err != nil {
		return err
	}
	return s.permits(u)
}

// Metrics returns the service's metrics, its current figures included.
func (s *Service) Metrics() prometheus.Gatherer { return s.registry }

// Memory returns the gate of what all requests hold in memory, those of runs included.
func (s *Service) Memory() *bytegate.Gate { return s.opts.Handoffs.Memory }

// Room returns a fault where size more bytes would leave less than MinFreeDisk: a request that
// brings them needn't be read. A negative size is unknown.
func (s *Service) Room(size int64) error { return s.room(max(size, 0)) }

// Cancel is the loop's, but for a damaged store: then no run has a job here, and none is known
// to have ended.
func (s *Service) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	if err := s.undamaged(ctx); err != nil {
		return api.Record{}, err
	}
	return s.loop.Cancel(ctx, id, reason)
}

// Writable implements feature.Gate.
func (s *Service) Writable(ctx context.Context) error {
	return errors.Join(s.undamaged(ctx), s.room(0))
}

// undamaged returns the fault that says how the store is damaged, or nil.
func (s *Service) undamaged(ctx context.Context) error {
	if !s.store.Damaged() {
		return nil
	}
	return s.store.Health(ctx)
}
