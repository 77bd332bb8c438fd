package orchestrator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
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
	units    *registry.Registry
	registry *prometheus.Registry
	lock     *os.File
	opened   time.Time
	whole    wholeFiles
	tasks    sync.WaitGroup // sweeping, warming, recovering and probing
	started  atomic.Bool
	ageHeld  time.Time     // until then no run is too old; see holdAge
	render   pushes.Render // nil: there are no pushes

	readiness readiness
	pages     eventPages
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
	s.registry = s.metrics.Registry(s.figures, s.collectors()...)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.openHome(); err != nil {
		return nil, err
	}
	if err := s.openKinds(); err != nil {
		return nil, err
	}
	if s.store, err = store.Open(s.path(layout.Database),
		store.Options{Logger: s.logger, NotEmpty: s.hasRuns()}); err != nil {
		return nil, err
	}
	s.compactStore()
	s.journal = s.store
	s.schedules = s.newSchedules()
	s.units, err = registry.New(registry.Options{
		Home: s.path("units"), Sources: opts.Sources, Accept: s.acceptUnit,
		Govern: s.govern, Logger: s.logger,
	})
	if err != nil {
		return nil, err
	}
	s.findVersion = s.units.Version
	return s, nil
}

func (s *Service) openHome() (err error) {
	for _, dir := range []string{"", "bin", "runs", "spool", "units", layout.Sessions, layout.Schedules} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return fault.Wrap(fault.Unavailable, err, "the data directory %q can't be made", s.opts.Home).
				WithHint("name another one with --data DIR or AOD_DATA")
		}
	}
	s.lock, err = safefs.AwaitLock(s.path("lock"), lockWait)
	if errors.Is(err, safefs.ErrLocked) {
		return fault.Wrap(fault.Conflict, err, "another server runs over %q", s.opts.Home).
			WithHint("stop it, or give this one a data directory of its own with --data DIR")
	}
	if err != nil {
		return fmt.Errorf("lock home: %w", err)
	}
	s.modelCache.Dir = s.path("modelcache")
	s.home = run.Home{
		Dir: s.opts.Home, Runs: s.path("runs"), Bin: s.path("bin"), Cards: s.path("cards"),
		Disks: runtime.NewDisks(s.opts.MinFreeDisk, s.opts.Home),
	}
	if s.home.Owner, err = ownerOf(s.opts.Home); err != nil {
		return err
	}
	return s.emptySpool()
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
	left, err := s.store.Unfinished(ctx)
	if s.store.Damaged() {
		s.started.Store(true)
		s.logger.Error("orchestrator started for reading only", fault.LogAttr(s.store.Health(ctx)))
		return nil
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if err := errors.Join(s.readSwitches(ctx), s.restoreSessions(ctx), s.schedules.Restore(ctx)); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	s.holdAge(ctx)
	trees := treeCache{
		service: s, unfinished: map[string]bool{}, trees: map[string]*handoff.Tree{},
		spent: map[string]map[string]ledger.Amount{},
	}
	for _, row := range left {
		trees.unfinished[row.ID] = true
	}
	jobs := make([]*job, len(left))
	for i, row := range left {
		jobs[i] = s.recover(ctx, row, trees)
	}
	for _, j := range jobs {
		j.goOn()
	}
	s.cancelOrphans()
	s.sessions.GoOn()
	s.tasks.Go(func() { s.sweepStrays(s.life) })
	if s.opts.MemoryBytes == 0 {
		s.tasks.Go(func() { s.learnMemory(s.life) })
	}
	s.tasks.Go(func() { s.pruneRegularly(s.life) })
	disks := s.home.Disks
	s.tasks.Go(func() { disks.Watch(s.life) })
	for kind := range s.kinds.Each() {
		if warmer, ok := kind.(run.Warmer); ok {
			s.tasks.Go(func() { warmer.Warm(s.begin, world{s}) })
		}
	}
	s.started.Store(true)
	s.tasks.Go(func() { s.meetUnits(s.begin) })
	s.tasks.Go(func() { s.schedules.KeepTimes(s.begin) })
	if s.PushesOn() {
		s.tasks.Go(func() { s.deliverPushes(s.life) })
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

// world implements run.World for the kinds.
type world struct{ *Service }

// Units implements run.World.
func (w world) Units(ctx context.Context) []*unit.Unit {
	all, _ := w.usableUnits(ctx) // an error comes with the end of ctx
	return all
}

// usableUnits lists the units that can be run.
func (s *Service) usableUnits(ctx context.Context) (all []*unit.Unit, err error) {
	listed, err := s.units.List(ctx)
	for _, l := range listed {
		if l.Unit != nil {
			all = append(all, l.Unit)
		}
	}
	return all, err
}

// Unit implements run.World.
func (w world) Unit(ctx context.Context, name string) (*unit.Unit, error) {
	return w.units.Get(ctx, name)
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
	err := s.closeKinds()
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

// admits returns a fault while the service stops, has not begun, can't store, or has too
// little disk.
func (s *Service) admits(ctx context.Context) error {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing || !s.started.Load() {
		return fault.New(fault.Unavailable, "the server is starting or shutting down").WithHint("try again in a moment")
	}
	if err := s.store.Health(ctx); err != nil {
		return err
	}
	return s.room(0)
}

// Room returns a fault where size more bytes would leave less than MinFreeDisk: a request that
// brings them needn't be read. A negative size is unknown.
func (s *Service) Room(size int64) error { return s.room(max(size, 0)) }

// ownerOf returns the label of a home's containers. It is made once and stored in the home.
// The path would not do: two servers in containers of one engine may both have /data.
func ownerOf(home string) (string, error) {
	path := filepath.Join(home, "owner")
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) > 0 {
		return string(raw), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read owner: %w", err)
	}
	owner := strings.ToLower(rand.Text()[:12])
	if err := safefs.Replace(path, []byte(owner),
		safefs.ReplaceOptions{Mode: 0o600, OneWriter: true, Synced: true}); err != nil {
		return "", fmt.Errorf("write owner: %w", err)
	}
	return owner, nil
}

// lockWait is how long to wait for the lock of a home. After kill -9 the kernel releases the
// lock only when it has removed the dead process.
const lockWait = 3 * time.Second
