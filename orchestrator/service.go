package orchestrator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/safefs"
	"github.com/agent-on-demand/aod/store"
	"github.com/agent-on-demand/aod/unit"
)

// ServiceOptions are the settings of a Service. A zero field has the default that is
// named with it.
type ServiceOptions struct {
	Home    string   // its directory, for it alone
	Sources []string // directories of units, see unit.Options
	Logger  *slog.Logger
	Labels  map[string]string // on every container, beside AOD's own
	Limits  runtime.Limits    // in force where a unit says nothing

	Concurrency int           // runs at once; default twice the number of CPUs
	Starts      int           // containers started at once; default the number of CPUs
	Queue       int           // how many runs of one unit may wait; default 100
	QueueWait   time.Duration // how long one may wait; default 10 minutes
	Retries     int           // after an attempt that failed for a transient reason; default 0
	RetryDelay  time.Duration // before the first retry, twice as long before each other; default 1 s
	MaxTimeout  time.Duration // the longest that a run may ask for; default 24 hours

	Handoffs handoff.Limits // of what runs may call; zero fields are the defaults

	PayloadBytes int64 // of an input; default 1 MiB
	MinFreeDisk  int64 // below it new runs are refused; default 0, no bound

	RetentionAge  time.Duration // of finished runs; 0 keeps them
	RetentionSize int64         // of all that is kept of finished runs, in bytes; 0 is no bound
	SweepInterval time.Duration // default 10 minutes

	Pool    PoolOptions // sandboxes that wait for runs; an engine elsewhere has none
	Secrets string      // a directory of secrets, a file each; "" is none

	Units map[string]UnitSettings // by name
}

// UnitSettings are what the operator says about one unit; zero fields say nothing.
type UnitSettings struct {
	Concurrency int // runs at once
	Queue       int
	Retries     *int
	ReadWrite   bool // runs change something that they share: one at a time (specification "Agent Wrapper", AccessType)
	Timeout     time.Duration
	MayCall     []string // units beside those of its tools.yaml
	MayNotCall  []string // units, whatever its tools.yaml says
	ModelPath   string   // Request.ModelPath of all its runs
	StdinBytes  int64    // Request.StdinBytes of all its runs
	Warm        *int     // sandboxes that wait for its runs; nil: what its agent.yaml says
}

// grants are the units that one may call: what its tools.yaml says, and the operator.
func (u UnitSettings) grants(own []string) []string {
	all := slices.Concat(own, u.MayCall)
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(u.MayNotCall, name) })
}

func (o ServiceOptions) withDefaults() ServiceOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&o.Concurrency, 2*goruntime.NumCPU())
	setDefault(&o.Starts, goruntime.NumCPU())
	setDefault(&o.Queue, 100)
	setDefault(&o.QueueWait, 10*time.Minute)
	setDefault(&o.RetryDelay, time.Second)
	setDefault(&o.MaxTimeout, 24*time.Hour)
	setDefault(&o.PayloadBytes, 1<<20)
	setDefault(&o.SweepInterval, 10*time.Minute)
	o.Limits = o.Limits.Or(runtime.DefaultLimits())
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

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
//	Home/units/         every version of every unit, see package unit
type Service struct {
	opts   ServiceOptions
	exec   *Orchestrator
	store  *store.Store
	units  *unit.Registry
	queue  *queue.Queue
	pool   *pool
	logger *slog.Logger
	lock   *os.File
	opened time.Time

	describing gate // one unit at a time is asked for its card: whoever else wants that finds it remembered

	life    context.Context // of the runs; its end detaches from them
	detach  context.CancelCauseFunc
	begin   context.Context // of what waits to begin; it ends with the admission
	hold    context.CancelCauseFunc
	jobs    sync.WaitGroup
	tasks   sync.WaitGroup // sweeping and recovering
	metrics *metrics

	mu      sync.Mutex
	live    map[string]*job
	closing bool
	started bool
}

// NewService opens a home and starts nothing. A home that another Service holds is a
// Conflict fault, a model that isn't there an Input fault.
func NewService(engine Engine, opts ServiceOptions) (_ *Service, err error) {
	s := &Service{opts: opts.withDefaults(), live: map[string]*job{}, metrics: newMetrics(), opened: time.Now(), describing: newGate(1)}
	s.metrics.registry.MustRegister(moment{s})
	s.logger = s.opts.Logger
	if s.opts.Home, err = filepath.Abs(s.opts.Home); err != nil {
		return nil, fmt.Errorf("home: %w", err)
	}
	if err := checkModels(engine, s.opts.Units); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.openHome(); err != nil {
		return nil, err
	}
	if s.store, err = store.Open(s.path("aod.db"), store.Options{Logger: s.logger}); err != nil {
		return nil, err
	}
	if s.units, err = unit.New(unit.Options{Home: s.path("units"), Sources: s.opts.Sources, Accept: s.build, Logger: s.logger}); err != nil {
		return nil, err
	}
	owner, err := ownerOf(s.opts.Home)
	if err != nil {
		return nil, err
	}
	s.exec = &Orchestrator{
		engine: engine, logger: s.logger, labels: s.opts.Labels, limits: s.opts.Limits,
		owner: owner, bin: s.path("bin"), cards: s.path("cards"), starts: newGate(s.opts.Starts), images: newImageCache(),
	}
	s.exec.agents = newAgents(secrets{dir: s.opts.Secrets}, s.logger)
	s.exec.handoffs = s.opts.Handoffs
	s.exec.newCalls = s.newCalls
	s.exec.grants = func(c *capsule.Capsule) []string { return s.opts.Units[c.Name].grants(grants(c)) }
	s.queue = queue.New(s.opts.Concurrency)
	if runtime.IsRemote(engine) {
		s.opts.Pool.Size = 0
	}
	s.pool = newPool(s, s.opts.Pool)
	s.life, s.detach = context.WithCancelCause(context.Background())
	s.begin, s.hold = context.WithCancelCause(s.life)
	return s, nil
}

func (s *Service) openHome() (err error) {
	for _, dir := range []string{"", "bin", "runs", "spool", "units"} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return fault.Wrap(fault.Unavailable, err, "the data directory %q can't be made", s.opts.Home).
				WithHint("name another one with --data DIR or AOD_DATA")
		}
	}
	s.lock, err = safefs.AwaitLock(s.path("lock"), lockPatience)
	if errors.Is(err, safefs.ErrLocked) {
		return fault.Wrap(fault.Conflict, err, "another server runs over %q", s.opts.Home).
			WithHint("stop it, or give this one a data directory of its own with --data DIR")
	}
	if err != nil {
		return fmt.Errorf("lock home: %w", err)
	}
	return errors.Join(s.emptySpool(), s.emptyPool())
}

// emptySpool removes what an earlier process was receiving when it died.
func (s *Service) emptySpool() error {
	entries, err := os.ReadDir(s.path("spool"))
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.path("spool"), entry.Name())))
	}
	return err
}

func (s *Service) path(rel string) string { return filepath.Join(s.opts.Home, rel) }

func (s *Service) runPath(id string) string { return filepath.Join(s.opts.Home, "runs", id) }

// Start goes on with every run that an earlier Service left, and admits new ones. It
// returns when all of them are known; the engine need not answer yet.
func (s *Service) Start(ctx context.Context) error {
	left, err := s.store.Unfinished(ctx)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	trees := forest{service: s, trees: map[string]*handoff.Tree{}}
	for _, row := range left {
		s.recover(ctx, row, trees)
	}
	s.cancelOrphans()
	s.tasks.Go(func() { s.tidy(s.life) })
	s.tasks.Go(func() { s.sweepAlways(s.life) })
	if s.opts.Pool.Size > 0 {
		s.tasks.Go(func() { s.pool.run(s.begin) })
	}
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.logger.Info("orchestrator started", "recovered", len(left))
	return nil
}

// Shutdown stops admitting and waits for the runs that go on until ctx ends; with drain
// also for those that wait. What is left then goes on in the next Service: containers
// are not stopped.
func (s *Service) Shutdown(ctx context.Context, drain bool) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	if !drain {
		s.hold(runtime.ErrDetach)
	}
	idle := make(chan struct{})
	go func() {
		s.jobs.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		if left := s.running(); left > 0 {
			s.logger.Warn("runs are left to the next start", "runs", left)
		}
	}
	s.detach(runtime.ErrDetach)
	<-idle
	s.tasks.Wait()
}

// Close ends what is left of a Service, at once where it wasn't shut down before, and
// lets its home go.
func (s *Service) Close() error {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	s.Shutdown(over, false)
	return s.close()
}

func (s *Service) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// close lets go of what NewService opened, as far as it came.
func (s *Service) close() error {
	var err error
	if s.exec != nil {
		s.exec.agents.close()
	}
	if s.store != nil {
		err = s.store.Close()
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// Ready says why the service can't take runs now: a fault, or nil.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.admits(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	_, err := s.exec.engine.Probe(ctx)
	return err
}

// admits refuses new runs while the service stops, has not begun or has no room.
func (s *Service) admits() error {
	s.mu.Lock()
	closing, started := s.closing, s.started
	s.mu.Unlock()
	if closing || !started {
		return fault.New(fault.Unavailable, "the server is starting or shutting down").WithHint("try again in a moment")
	}
	free, err := freeBytes(s.opts.Home)
	if err == nil && free < s.opts.MinFreeDisk {
		return fault.New(fault.Unavailable, "the disk is almost full: %s are free, new runs need %s", megabytes(free), megabytes(s.opts.MinFreeDisk)).
			WithHint("make room, for example with `aod prune`, or lower min_free_disk")
	}
	return nil
}

// Stats returns the figures of the moment.
func (s *Service) Stats(ctx context.Context) (Stats, error) {
	totals, err := s.store.Totals(ctx)
	if err != nil {
		return Stats{}, err
	}
	stats := Stats{Slots: s.opts.Concurrency, StoredRuns: totals.Runs, StoredBytes: totals.DiskBytes}
	stats.Running, stats.Waiting = s.queue.Counts()
	stats.FreeBytes, _ = freeBytes(s.opts.Home) // unknown is 0
	return stats, nil
}

// ownerOf returns what the containers of a home are labelled with. It is made once and
// stays with the home: paths are no names, since two servers in containers of one engine
// each have theirs at /data.
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
	if err := safefs.Replace(path, []byte(owner), safefs.ReplaceOptions{Mode: 0o600, OneWriter: true}); err != nil {
		return "", fmt.Errorf("write owner: %w", err)
	}
	return owner, nil
}
