package container

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/quota"
)

// Engine is the part of a container engine that this package needs.
type Engine interface {
	runtime.Images
	runtime.Builder
	runtime.Containers
	runtime.Prober
}

// Options are the settings of Containers.
type Options struct {
	Logger *slog.Logger      // ids, sizes and times only; nil discards
	Labels map[string]string // on every container, beside AOD's own
	Limits runtime.Limits    // in force where a unit says nothing; zero fields are the defaults
	Starts int               // containers started at once; default the number of CPUs
	Pool   pool.Options      // sandboxes that wait for runs; an engine elsewhere has none
	Units  map[string]Extra  // the operator's, by unit
	UIDs   runtime.UIDs      // of sandboxes, where this process is root and the engine can; empty: all share one
	// Patches spare runs of a directory that is being edited the build of an image; nil: each
	// state of a directory has its image. An engine elsewhere builds as ever.
	Patches *Patches
	Builds  BuildOptions
	// Secret returns a secret by its name, for each start of a program; nil: there are none.
	Secret func(name string) (secrets.Secret, error)
	// NeedSeccomp has nothing started on an engine without seccomp.
	NeedSeccomp bool
}

// Containers runs units in sandboxes of one engine. It is the kind of capsules and of
// Agentic Units.
type Containers struct {
	engine Engine
	opts   Options
	logger *slog.Logger
	home   run.Home
	placed atomic.Bool         // the engine's disk is among home.Disks
	starts *semaphore.Weighted // containers started at once
	inits  initbin.Installer
	images sync.Map // of foundImage, by unit and version, so that a run needn't ask the engine again
	builds *builds
	// by reference, when this process was asked for an image: an upload has its image before it is a unit
	asked sync.Map
	pool  *pool.Pool
	users users

	livings sync.Map // of *living, by session

	confined atomic.Bool // as NeedSeccomp asks, when the engine answered last

	// one unit at a time is asked for its card: whoever else wants that finds it remembered
	describing *semaphore.Weighted
	life       context.Context //nolint:containedctx // of what belongs to no run; Close ends it
	end        context.CancelFunc
}

// New returns a kind that has not started anything.
func New(engine Engine, opts Options) *Containers {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Starts == 0 {
		opts.Starts = goruntime.NumCPU()
	}
	if runtime.IsRemote(engine) {
		opts.Pool.Size, opts.Patches = 0, nil
	}
	if opts.Secret == nil {
		opts.Secret = secrets.Files{}.Read
	}
	opts.Limits = opts.Limits.Or(runtime.DefaultLimits())
	c := &Containers{
		engine: engine, opts: opts, logger: opts.Logger, starts: semaphore.NewWeighted(int64(opts.Starts)),
		builds: newBuilds(opts.Builds), describing: semaphore.NewWeighted(1),
	}
	c.pool = pool.New(source{c}, opts.Pool, opts.Logger)
	return c
}

// Open implements run.Opener. A model that isn't there is an Input fault.
func (c *Containers) Open(home run.Home) error {
	c.home = home
	c.life, c.end = context.WithCancel(context.Background())
	if err := checkModels(c.engine, c.opts.Units); err != nil {
		return err
	}
	if err := safefs.RemoveTree(c.poolDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // what waited in an earlier process; its containers are found by their labels
	}
	return os.MkdirAll(c.poolDir(), 0o700)
}

// Close implements run.Opener.
func (c *Containers) Close() error {
	if c.end != nil {
		c.end()
	}
	for _, v := range c.livings.Range {
		v.(*living).release()
	}
	c.livings.Clear()
	c.builds.close()
	return nil
}

// poolDir is where the directories of waiting sandboxes are.
func (c *Containers) poolDir() string { return filepath.Join(c.home.Dir, "pool") }

// Check implements run.Kind.
func (c *Containers) Check(req run.Request, ready run.Input) error {
	if err := c.takesSecrets(req.Unit); err != nil {
		return err
	}
	if err := c.reaches(req.Unit); err != nil {
		return err
	}
	return programOf(req.Unit).check(c, req, ready)
}

// reaches returns an Unsupported fault for a unit that is to reach hosts from an engine elsewhere.
func (c *Containers) reaches(u *unit.Unit) error {
	if len(u.Policy.Egress) == 0 || !runtime.IsRemote(c.engine) {
		return nil
	}
	return fault.New(fault.Unsupported, "%q reaches hosts by name (egress), which it can't from an engine elsewhere",
		u.Name).
		WithHint("use an engine on this machine")
}

// Execution implements run.Kind.
func (c *Containers) Execution(r *run.Run) run.Execution {
	x := &execution{Run: r, containers: c, program: c.programOfRun(r), begun: r.State() != api.Idle}
	x.uncertain = x.begun
	if raw, ok := r.Saved.(json.RawMessage); ok {
		_ = json.Unmarshal(raw, &x.saved) // it was written from the same type
	}
	r.Saved = &x.saved
	for _, id := range x.saved.Sandboxes {
		c.pool.Claimed(id)
	}
	if config := talksWith(r); config != nil {
		return &turn{execution: x, config: config}
	}
	return x
}

// Warm implements run.Warmer.
func (c *Containers) Warm(ctx context.Context, world run.World) {
	if c.opts.Pool.Size > 0 {
		c.pool.Run(ctx, world)
	}
}

// Warmed implements run.Warmer.
func (c *Containers) Warmed() api.PoolStats { return c.pool.Stats() }

// Pool returns the pool of warm sandboxes.
func (c *Containers) Pool() *pool.Pool { return c.pool }

// Collectors returns the metrics of the pool.
func (c *Containers) Collectors() []prometheus.Collector { return []prometheus.Collector{c.pool} }

// Ready implements run.Sweeper.
func (c *Containers) Ready(ctx context.Context) error {
	info, err := c.probe(ctx)
	if err != nil {
		return err
	}
	return c.confines(info)
}

// probe asks the engine about itself, and has its disk watched.
func (c *Containers) probe(ctx context.Context) (runtime.EngineInfo, error) {
	info, err := c.engine.Probe(ctx)
	if err == nil && info.Local {
		c.home.Disks.Add(info.RootDir)
	}
	return info, err
}

// room returns a fault where the disks have no room for an image.
func (c *Containers) room(ctx context.Context) error {
	if c.home.Disks.Bounded() && !c.placed.Load() {
		if _, err := c.probe(ctx); err == nil {
			c.placed.Store(true)
		}
	}
	return c.home.Disks.Room(0)
}

// SweepRun implements run.Sweeper.
func (c *Containers) SweepRun(ctx context.Context, id string) error {
	return runtime.RemoveAll(ctx, c.engine, id, c.home.Owner)
}

// sweepGrace is how long a sweep that has begun goes on when this process is to end.
const sweepGrace = 10 * time.Second

// SweepStrays implements run.Sweeper: it waits until the engine answers.
func (c *Containers) SweepStrays(ctx context.Context, live func(id string) bool) error {
	if _, err := c.awaitEngine(ctx); err != nil {
		return err
	}
	if err := acquire(ctx, c.describing); err != nil { // for which there is no run
		return err
	}
	defer c.describing.Release(1)
	if err := quota.Sweep(c.home.Dir); err != nil && !errors.Is(err, quota.ErrUnsupported) {
		c.logger.Warn("limits of directories that are gone can't be removed", fault.LogAttr(err))
	}
	begun, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(sweepGrace, stop) })()
	removed, err := runtime.RemoveStray(begun, c.engine, c.home.Owner,
		func(id string) bool { return live(id) || c.pool.Has(id) })
	if removed > 0 {
		c.logger.Warn("removed stray containers or volumes", "count", removed)
	}
	return err
}

// Accept implements run.Acceptor: it builds the unit's image.
func (c *Containers) Accept(ctx context.Context, u *unit.Unit) error {
	_, _, _, err := c.Build(ctx, u, func(runtime.BuildEvent) {})
	return err
}

// Image implements run.Describer.
func (c *Containers) Image(u *unit.Unit) string {
	recipe, err := c.recipeOf(u)
	if err != nil {
		return ""
	}
	return recipe.Tag()
}

// acquire waits for a permit. The error is the cause that the context ended with.
func acquire(ctx context.Context, permits *semaphore.Weighted) error {
	if err := permits.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// capsuleOf returns the directory that a unit of these kinds was read from.
func capsuleOf(u *unit.Unit) (*capsule.Capsule, error) {
	c, ok := u.Definition.(*capsule.Capsule)
	switch {
	case !ok:
		return nil, fault.New(fault.Input, "%q has no image", u.Name)
	case c.Remote != nil:
		return nil, fault.New(fault.Input, "%q has no image: its agent is elsewhere", u.Name)
	}
	return c, nil
}

// Memory implements run.Measurer: it waits until the engine answers.
func (c *Containers) Memory(ctx context.Context) int64 {
	info, err := c.awaitEngine(ctx)
	if err != nil {
		return 0
	}
	return info.MemoryBytes
}
