package container

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	goruntime "runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/au"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
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
	// Images has images that builds name and the engine lacks; nil: registries alone have.
	Images ImageSource
	// Secret returns a secret by its name, for each start of a program; nil: there are none.
	Secret func(name string) (secrets.Secret, error)
	// NeedSeccomp has nothing started on an engine without seccomp.
	NeedSeccomp bool
	// Elsewhere says that runs go on at other machines: the engine is asked for nothing but what units are, and what is
	// left of runs here. It need not be there.
	Elsewhere bool
}

// Containers runs units in sandboxes of one engine. It is the kind of capsules and of
// Agentic Units.
type Containers struct {
	machine *machine
	starter *starter
	images  *imageBuilder
	pool    *pool.Pool
	pruner  imagePruner
	trials  *trials
	lookups *lookups
	cards   *cards
	tools   toolLists
	livings *livings
	end     context.CancelFunc // of what belongs to no run
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
	if opts.Elsewhere {
		opts.Pool.Size = 0
	}
	if opts.Secret == nil {
		opts.Secret = secrets.Files{}.Read
	}
	opts.Limits = opts.Limits.Or(runtime.DefaultLimits())
	m := &machine{engine: engine, opts: opts, logger: opts.Logger}
	c := &Containers{machine: m, livings: &livings{machine: m}}
	c.starter = &starter{machine: m, starts: semaphore.NewWeighted(int64(opts.Starts))}
	c.images = &imageBuilder{machine: m, builds: newBuilds(opts.Builds)}
	c.lookups = &lookups{machine: m}
	c.trials = &trials{machine: m, starter: c.starter, images: c.images, lookups: c.lookups}
	warm := source{machine: m, starter: c.starter, images: c.images, trials: c.trials}
	c.pool = pool.New(warm, opts.Pool, opts.Logger)
	c.pruner = imagePruner{machine: m, images: c.images, pool: c.pool}
	c.cards = &cards{machine: m, images: c.images, trials: c.trials, describing: semaphore.NewWeighted(1)}
	c.tools = toolLists{machine: m, starter: c.starter, trials: c.trials}
	return c
}

// Open implements run.Opener. A model that isn't there is an Input fault.
func (c *Containers) Open(home run.Home) error {
	m := c.machine
	m.home = home
	m.life, c.end = context.WithCancel(context.Background())
	if err := checkModels(m.engine, m.opts.Units); err != nil {
		return err
	}
	if err := safefs.RemoveTree(m.poolDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // what waited in an earlier process; its containers are found by their labels
	}
	return os.MkdirAll(m.poolDir(), 0o700)
}

// Close implements run.Opener.
func (c *Containers) Close() error {
	if c.end != nil {
		c.end()
	}
	c.livings.release()
	c.images.builds.close()
	return nil
}

// Check implements run.Kind.
func (c *Containers) Check(req run.Request, ready run.Input) error {
	if err := c.machine.takesSecrets(req.Unit); err != nil {
		return err
	}
	if err := c.machine.reaches(req.Unit); err != nil {
		return err
	}
	return programOf(req.Unit).check(c.machine, req, ready)
}

// Execution implements run.Kind.
func (c *Containers) Execution(r *run.Run) run.Execution {
	x := newExecution(c, r)
	for _, id := range x.saved.Sandboxes {
		c.pool.Claimed(id)
	}
	if config := talksWith(r); config != nil {
		return newTurn(x, c.livings, config)
	}
	return x
}

// Warm implements run.Warmer.
func (c *Containers) Warm(ctx context.Context, world run.World) {
	if c.machine.opts.Pool.Size > 0 {
		c.pool.Run(ctx, world)
	}
}

// Warmed implements run.Warmer.
func (c *Containers) Warmed() api.PoolStats { return c.pool.Stats() }

// Pool returns the pool of warm sandboxes.
func (c *Containers) Pool() *pool.Pool { return c.pool }

// Collectors returns the metrics of the pool and of the builds.
func (c *Containers) Collectors() []prometheus.Collector {
	return append(c.images.builds.figures.collectors(), c.pool)
}

// Ready implements run.Sweeper.
func (c *Containers) Ready(ctx context.Context) error {
	if c.machine.opts.Elsewhere {
		return nil
	}
	return c.machine.ready(ctx)
}

// Confined returns an Unsupported fault where NeedSeccomp is set and the engine has no seccomp. It
// asks the engine unless the last answer was good.
func (c *Containers) Confined(ctx context.Context) error { return c.machine.confirm(ctx) }

// SweepRun implements run.Sweeper.
func (c *Containers) SweepRun(ctx context.Context, id string) error {
	return c.machine.sweepRun(ctx, id)
}

// sweepGrace is how long a sweep that has begun goes on when this process is to end.
const sweepGrace = 10 * time.Second

// SweepStrays implements run.Sweeper: it waits until the engine answers, if there is to be one.
func (c *Containers) SweepStrays(ctx context.Context, live func(id string) bool) error {
	return c.lacking(c.sweepStrays(ctx, live))
}

// lacking is the error of what the engine was to do, if there is to be one.
func (c *Containers) lacking(err error) error {
	if c.machine.opts.Elsewhere && errors.Is(err, runtime.ErrUnreachable) {
		return nil
	}
	return err
}

func (c *Containers) sweepStrays(ctx context.Context, live func(id string) bool) error {
	if _, err := c.machine.await(ctx); err != nil {
		return err
	}
	if err := acquire(ctx, c.cards.describing); err != nil { // for which there is no run
		return err
	}
	defer c.cards.describing.Release(1)
	if err := quota.Sweep(c.machine.home.Dir); err != nil && !errors.Is(err, quota.ErrUnsupported) {
		c.machine.logger.Warn("limits of directories that are gone can't be removed", fault.LogAttr(err))
	}
	begun, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(sweepGrace, stop) })()
	removed, err := runtime.RemoveStray(begun, c.machine.engine, c.machine.home.Owner,
		func(id string) bool { return live(id) || c.pool.Has(id) })
	if removed > 0 {
		c.machine.logger.Warn("removed stray containers or volumes", "count", removed)
	}
	return err
}

// Build returns the capsule's image, its reference, and whether it had to be built.
func (c *Containers) Build(
	ctx context.Context, u *unit.Unit, progress func(runtime.BuildEvent),
) (runtime.Image, string, bool, error) {
	found, built, err := c.images.build(ctx, u, progress, inPlace)
	return found.image, found.ref, built, err
}

// Accept implements run.Acceptor: it builds the unit's image, and looks the program of a wrapped
// agent up in it.
func (c *Containers) Accept(ctx context.Context, u *unit.Unit) error {
	_, _, _, err := c.Build(ctx, u, func(runtime.BuildEvent) {})
	if err == nil {
		c.trials.findAhead(ctx, u)
	}
	return err
}

// EnsureBase builds the base image of this version where it is missing.
func (c *Containers) EnsureBase(ctx context.Context, progress func(runtime.BuildEvent)) error {
	return c.images.ensureBase(ctx, progress)
}

// PruneImages implements run.ImagePruner.
func (c *Containers) PruneImages(
	ctx context.Context, units func() ([]*unit.Unit, error), dryRun bool,
) (removed int, err error) {
	removed, err = c.pruner.prune(ctx, units, dryRun)
	return removed, c.lacking(err)
}

// Card implements run.Describer: the model card of an Agentic Unit as its program printed
// it, or the tools of an MCP server. The program is asked once for each version, in a sandbox of
// its own. The error is an Input fault for a unit of another kind, a Capsule fault for one that
// gives no card.
func (c *Containers) Card(ctx context.Context, u *unit.Unit) (json.RawMessage, error) {
	if u.Kind == unit.MCP {
		return c.cards.whenBuilt(ctx, u, func() (json.RawMessage, error) { return c.tools.card(ctx, u) })
	}
	return c.cards.ask(ctx, u)
}

// StdinBytes implements run.Describer.
func (c *Containers) StdinBytes(u *unit.Unit) (int64, error) { return c.cards.stdinBytes(u) }

// Describe returns the model card of an Agentic Unit. The program is asked once for each
// image. observe gets the steps of the image's build, and may be nil. If the program prints
// no card, or can't be started, the error is a Capsule fault.
func (c *Containers) Describe(ctx context.Context, u *unit.Unit, observe func(run.Event)) (*au.Card, error) {
	return c.cards.describe(ctx, u, observe)
}

// Tools returns the tools that an MCP server has, whether they may be called or not. It is
// asked once for each image. observe gets the steps of the image's build, and may be nil. The
// error is a Capsule fault where the server doesn't tell.
func (c *Containers) Tools(ctx context.Context, u *unit.Unit, observe func(run.Event)) ([]relay.Tool, error) {
	return c.tools.ask(ctx, u, observe)
}

// Try starts a unit once, always without a network, and returns what it did. A failure of the
// unit isn't an error.
func (c *Containers) Try(ctx context.Context, u *unit.Unit, trial Trial) (Observed, error) {
	return c.trials.try(ctx, u, trial)
}

// FindProgram has the init of a sandbox look up the program of a wrapped agent, as it does
// before a run, and starts nothing. observe gets the steps of the image's build, and may be
// nil. The error is a Capsule fault where the program isn't there, or can't be executed.
func (c *Containers) FindProgram(ctx context.Context, u *unit.Unit, observe func(run.Event)) error {
	return c.trials.findProgram(ctx, u, observe)
}

// Talks implements run.Talker.
func (*Containers) Talks(u *unit.Unit) bool { return u.Kind == unit.MCP }

// SessionRules implements mcpsessions.Talker.
func (c *Containers) SessionRules(u *unit.Unit) (relay.Options, error) { return SessionRules(u) }

// Conversation implements run.Conversant.
func (c *Containers) Conversation(u *unit.Unit) (terms run.SessionTerms, has bool, err error) {
	config := talker(u)
	if config == nil {
		return terms, false, nil
	}
	if err := c.machine.converses(u); err != nil {
		return terms, false, err
	}
	terms.Alone, terms.Resumes = config.Mode != agent.Interactive, resumes(config)
	if config.Session.KeepAlive {
		terms.Idle = cmp.Or(config.Session.Idle, idleTime)
	}
	return terms, true, nil
}

// EndSession implements run.Conversant. The program gets a SIGTERM first.
func (c *Containers) EndSession(ctx context.Context, id string) error { return c.livings.end(ctx, id) }

// Image implements run.Describer.
func (c *Containers) Image(u *unit.Unit) string {
	recipe, err := c.images.recipeOf(u)
	if err != nil {
		return ""
	}
	return recipe.Tag()
}

// Program implements run.Describer.
func (c *Containers) Program(u *unit.Unit) *api.AgentProgram { return c.lookups.of(u, c.Image(u)) }

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
	info, err := c.machine.await(ctx)
	if err != nil {
		return 0
	}
	return info.MemoryBytes
}
