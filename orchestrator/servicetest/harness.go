package servicetest

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// Settings are those of a harness, and of the Services and kinds that it makes.
type Settings struct {
	orchestrator.Options // Home: default a temporary directory; Kinds: go before those that the harness makes
	Containers           container.Options
	Remote               remote.Options
	Render               pushes.Render      // of pushes; nil: there are none
	Programs             map[string]Program // by the unit's name
	// Wrap is what each new Service has in place of the engine; nil: the engine itself.
	Wrap func(container.Engine) container.Engine

	Away  bool // New starts no Service
	Keeps bool // what the test leaves isn't looked at
}

// Option changes the settings of a harness.
type Option func(testing.TB, *Settings)

// Set is an option that changes the settings by themselves.
func Set(change func(*Settings)) Option {
	return func(_ testing.TB, s *Settings) { change(s) }
}

// Harness makes Services over one home and one engine, one after the other.
type Harness struct {
	testing.TB
	Settings   Settings
	Engine     *enginetest.Fake
	Service    *orchestrator.Service // the newest
	Containers *container.Containers // its kind

	closed bool // the newest is

	mu       sync.Mutex
	gates    map[string]chan struct{}
	started  map[string]int
	onCall   func(ctx context.Context, method string) error
	onReturn func(method string) error
}

// New returns a harness with the unit "worker", whose program does what its Orders are, and with those
// of its options. Its first Service has started.
func New(t testing.TB, options ...Option) *Harness {
	t.Helper()
	h := &Harness{TB: t, gates: map[string]chan struct{}{}, started: map[string]int{}}
	h.Settings = Settings{
		Options: orchestrator.Options{
			Sources: []string{t.TempDir()}, Concurrency: 4, Retries: 3, RetryDelay: time.Millisecond,
			Units: map[string]orchestrator.UnitSettings{},
		},
		Containers: container.Options{Units: map[string]container.Extra{}},
		Programs:   map[string]Program{},
	}
	for _, option := range append([]Option{Capsule("worker", workerAgent, workerSchema, h.work)}, options...) {
		option(t, &h.Settings)
	}
	if h.Settings.Home == "" {
		h.Settings.Home = filepath.Join(t.TempDir(), "server")
	}
	h.Engine = newEngine(h.run)
	h.Engine.Hook, h.Engine.Lost = h.called, h.returned
	if !h.Settings.Keeps {
		t.Cleanup(h.nothingLeft)
	}
	if !h.Settings.Away {
		h.Start()
	}
	return h
}

func newEngine(program enginetest.Program) *enginetest.Fake {
	engine := enginetest.NewFake(enginetest.WithInit(program))
	engine.AddImage(runtime.Image{
		ID: "sha256:debian", Tags: []string{dockertest.Image}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64",
	})
	return engine
}

// Open makes a Service that hasn't started: it has locked the home, and no run goes on.
func (h *Harness) Open() {
	h.Helper()
	opts := h.Settings
	opts.Containers.Logger, opts.Containers.Limits = opts.Logger, opts.Limits
	opts.Remote.Logger, opts.Remote.Door = opts.Logger, opts.Egress
	engine := container.Engine(h.Engine)
	if opts.Wrap != nil {
		engine = opts.Wrap(engine)
	}
	h.Containers = container.New(engine, opts.Containers)
	kinds := run.Kinds{
		string(unit.Capsule): h.Containers, string(unit.AU): h.Containers, string(unit.Agent): h.Containers,
		string(unit.Remote): remote.New(opts.Remote), string(unit.Flow): flow.New(opts.Logger),
	}
	maps.Copy(kinds, opts.Kinds)
	opts.Kinds = kinds
	service, err := orchestrator.NewService(opts.Options)
	if err != nil {
		h.Fatal(err)
	}
	service.RenderPushes(opts.Render)
	h.Service, h.closed = service, false
}

// Start makes a Service and has it go on with the runs of the one before.
func (h *Harness) Start() {
	h.Helper()
	h.Open()
	if err := h.Service.Start(context.Background()); err != nil {
		h.Fatal(err)
	}
}

// Stop ends the Service at once: what runs in containers goes on without it.
func (h *Harness) Stop() {
	h.Helper()
	h.closed = true
	if err := h.Service.Close(); err != nil {
		h.Error(err)
	}
}

// Restart has the next Service go on.
func (h *Harness) Restart() {
	h.Helper()
	h.Stop()
	h.Start()
}

// Submit has a run of a unit accepted, and returns its id.
func (h *Harness) Submit(unit string, input any) string {
	h.Helper()
	return h.Send(orchestrator.Submission{Unit: unit, Input: JSON(input)})
}

// Send has a submission accepted, and returns the id of its run.
func (h *Harness) Send(sub orchestrator.Submission) string {
	h.Helper()
	record, _, err := h.Service.Submit(context.Background(), sub)
	if err != nil {
		h.Fatal(err, fault.Public(err).Findings)
	}
	return record.ID
}

// JSON encodes a value of a test's own.
func JSON(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// Await returns a run at its very end, when it is cleaned up.
func (h *Harness) Await(id string) api.Record {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if _, err := h.Service.Await(ctx, id); err != nil {
		h.Fatal(err)
	}
	return h.Until(id, run.Over)
}

// Until returns a run when something is so.
func (h *Harness) Until(id string, is func(api.Record) bool) (record api.Record) {
	h.Helper()
	h.Within("run "+id, func() bool {
		var err error
		if record, err = h.Service.Get(context.Background(), id); err != nil {
			h.Fatal(err)
		}
		return is(record)
	})
	return record
}

// Running reports whether a run's program runs.
func Running(r api.Record) bool { return r.State == api.Running }

// Within waits until something is so, and fails the test if it doesn't come to that.
func (h *Harness) Within(what string, is func() bool) {
	h.Helper()
	testkit.Eventually(h, what, is)
}

// Gate returns a channel that Open closes, for a program or a hook to wait for.
func (h *Harness) Gate(name string) <-chan struct{} { return h.gate(name) }

// OpenGate has everybody go on who waits for a gate.
func (h *Harness) OpenGate(name string) { close(h.gate(name)) }

func (h *Harness) gate(name string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gates[name] == nil {
		h.gates[name] = make(chan struct{})
	}
	return h.gates[name]
}

// Started notes that a program began, and Starts returns how often one with that mark did.
func (h *Harness) Started(mark string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.started[mark]++
}

// Starts returns how often Started was told of a mark.
func (h *Harness) Starts(mark string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.started[mark]
}

// OnCall has the engine ask do first in every method, by the method's name; its error is the method's.
func (h *Harness) OnCall(do func(ctx context.Context, method string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onCall = do
}

// OnReturn has the engine ask do when a method has done its work; its error takes the place of the answer.
func (h *Harness) OnReturn(do func(method string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onReturn = do
}

func (h *Harness) called(ctx context.Context, method string) error {
	h.mu.Lock()
	do := h.onCall
	h.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(ctx, method)
}

func (h *Harness) returned(method string) error {
	h.mu.Lock()
	do := h.onReturn
	h.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(method)
}

// run is the program of every container.
func (h *Harness) run(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	program := h.Settings.Programs[spec.Labels[runtime.LabelUnit]]
	if program == nil {
		return exitNoProgram
	}
	terminated := enginetest.Terminated(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-terminated:
			cancel()
		case <-ctx.Done():
		}
	}()
	code := program(ctx, Sandbox{Spec: spec, Stdout: stdout, Stderr: stderr})
	if pause.Over(terminated) {
		return exitTerminated
	}
	return code
}

// nothingLeft holds at the end of every test: all runs have come to theirs.
func (h *Harness) nothingLeft() {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	h.OnCall(nil)
	h.OnReturn(nil)
	if h.Service != nil && !h.closed {
		if !h.Failed() {
			h.Service.Shutdown(ctx, true)
		}
		h.Stop()
	}
	if h.Failed() {
		return
	}
	containers, err := h.Engine.ContainersByLabel(ctx, map[string]string{runtime.LabelRun: ""})
	if err != nil || len(containers) > 0 {
		h.Errorf("containers left: %v %v", containers, err)
	}
	for _, dir := range []string{"spool/*", "pool/*", "runs/*/[0-9]*", "runs/*/lock"} {
		if left, _ := filepath.Glob(filepath.Join(h.Settings.Home, dir)); len(left) > 0 {
			h.Errorf("files left: %v", left)
		}
	}
}
