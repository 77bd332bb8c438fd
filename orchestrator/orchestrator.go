package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	goruntime "runtime"
	"sync"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/runtime"
)

// Engine is what the orchestrator needs of a container engine.
type Engine interface {
	runtime.Images
	runtime.Builder
	runtime.Containers
	runtime.Prober
}

// Options are an orchestrator's settings.
type Options struct {
	DataDir  string            // where runs live while they go on
	Logger   *slog.Logger      // ids, sizes and times only; nil discards
	Labels   map[string]string // on every container, beside AOD's own
	Limits   runtime.Limits    // in force where a unit says nothing; zero fields are the defaults
	Handoffs handoff.Limits    // of what runs may call; zero fields are the defaults

	Secrets     string            // a directory of secrets, a file each; "" is `secrets` in DataDir
	SecretFiles map[string]string // paths of single secrets, by name, which go before those of Secrets
}

// Orchestrator runs units on one engine over one data directory.
type Orchestrator struct {
	engine  Engine
	data    *dataDir
	logger  *slog.Logger
	labels  map[string]string
	limits  runtime.Limits
	running sync.WaitGroup

	owner  string      // tells its containers from those of another
	bin    string      // where the init is installed
	cards  string      // where model cards are remembered
	starts gate        // containers started at once
	images *imageCache // nil asks the engine each time

	agents   *agents
	queue    *queue.Queue // of the runs that live with their caller
	handoffs handoff.Limits
	grants   func(*capsule.Capsule) []string                    // whom it may call
	newCalls func(context.Context, *Run, runtime.Layout) callee // for each attempt
}

// New returns an orchestrator that has started nothing. It makes the data directory.
func New(engine Engine, opts Options) (*Orchestrator, error) {
	data, err := openDataDir(opts.DataDir)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	o := &Orchestrator{
		engine: engine,
		data:   data,
		owner:  data.owner,
		bin:    data.bin(),
		cards:  filepath.Join(data.path, "cards"),
		logger: opts.Logger,
		labels: opts.Labels,
		limits: opts.Limits.Or(runtime.DefaultLimits()),

		queue: queue.New(2 * goruntime.NumCPU()), starts: newGate(goruntime.NumCPU()), handoffs: opts.Handoffs,
	}
	kept := cmp.Or(opts.Secrets, filepath.Join(data.path, "secrets"))
	o.agents = newAgents(secrets{dir: kept, files: opts.SecretFiles}, o.logger)
	o.grants = grants
	o.newCalls = func(ctx context.Context, run *Run, layout runtime.Layout) callee {
		return o.attachedCalls(ctx, run, layout)
	}
	return o, nil
}

// Close waits for the runs that go on. Cancel their contexts first to hurry them.
func (o *Orchestrator) Close() {
	o.running.Wait()
	o.agents.close()
}

// Submit checks a request and starts the run. The fault of a wrong request comes
// back at once, with all violations, and nothing was started for it. The run is
// cancelled when ctx ends.
func (o *Orchestrator) Submit(ctx context.Context, req Request) (*Run, error) {
	prepared, err := req.prepare()
	if err != nil {
		return nil, err
	}
	id, err := newRunID(req.ID)
	if err != nil {
		return nil, err
	}
	run := newRun(id, prepared, req)
	o.running.Go(func() {
		defer close(run.done)
		run.err = o.execute(ctx, run)
	})
	return run, nil
}

// NewRunID returns an id for a run: unique, and sorted by time (UUID version 7).
func NewRunID() (string, error) { return newRunID("") }

func newRunID(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("new run id: %w", err)
	}
	return id.String(), nil
}
