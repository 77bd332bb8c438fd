// Package servicetest has the one harness of tests of a whole Service: a real orchestrator.Service with the real kinds,
// over the fake engine and a home of its own. Services come and go over one home and one engine; a program is a Go
// function, chosen by its unit's name.
//
//	New            makes the home, the units and the engine, and starts a Service
//	Submit, Await  have a run accepted, and wait for its very end
//	Stop, Start    end the Service at once; the next one goes on with what runs
//	Reboot         the next Service finds an engine without containers
//	OnCall         has the engine fail, wait, or tell when it is asked
//
// The tests here are of what a process leaves: its form (goldens), and that from every moment at which something is
// stored the next process comes to the same end (the crash table).
//
// A test that uses it is external, since orchestrator can't import it. At the end of each test nothing may be left: no
// container, and no file of a run that is over.
//
// It must not know Docker, HTTP or a terminal.
//
// Its Go API may change with every release: see docs/stability.md.
package servicetest

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/access"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/artifacts"
	"github.com/agent-on-demand/aod/orchestrator/feature/egresses"
	"github.com/agent-on-demand/aod/orchestrator/feature/mcpsessions"
	"github.com/agent-on-demand/aod/orchestrator/feature/memories"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/feature/upstreams"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// Settings are those of a harness, and of the Services and kinds that it makes.
type Settings struct {
	orchestrator.Options // Home: default a temporary directory; Kinds and Features: beside those that the harness makes
	Containers           container.Options
	Remote               remote.Options
	Models               models.Models
	Upstreams            *upstream.Upstreams
	Egress               *egress.Door // default one without exceptions
	Pushes               pushes.Options
	Render               pushes.Render // of pushes; nil: there are none
	Programs             Programs
	// Wrap is what each new Service has in place of the engine; nil: the engine itself.
	Wrap func(container.Engine) container.Engine
	// Opening changes the settings of each new Service alone.
	Opening func(*Settings)
	// Beside begins what goes on beside a Service that has started, and returns what ends it.
	Beside func(*Harness) (end func())

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

	closed    bool   // the newest is
	endBeside func() // what goes on beside it; nil: nothing

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
			Units: map[string]units.Settings{},
		},
		Containers: container.Options{Units: map[string]container.Extra{}},
		Programs:   Programs{},
	}
	for _, option := range append([]Option{Capsule("worker", workerAgent, workerSchema, h.work)}, options...) {
		option(t, &h.Settings)
	}
	if h.Settings.Home == "" {
		h.Settings.Home = filepath.Join(t.TempDir(), "server")
	}
	h.Reboot()
	if !h.Settings.Keeps {
		t.Cleanup(h.NothingLeft)
	}
	if !h.Settings.Away {
		h.Start()
	}
	return h
}

// Reboot has the next Service find an engine with the one image that units are made of, and nothing
// else.
func (h *Harness) Reboot() {
	h.Engine = enginetest.NewFake(enginetest.WithInit(h.Settings.Programs.Run))
	h.Engine.AddImage(runtime.Image{
		ID: "sha256:debian", Tags: []string{dockertest.Image}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64",
	})
	h.Engine.Hook, h.Engine.Lost = h.called, h.returned
}

// Open makes a Service that hasn't started: it has locked the home, and no run goes on.
func (h *Harness) Open() {
	h.Helper()
	opts := h.Settings
	if opts.Opening != nil {
		opts.Opening(&opts)
	}
	opts.Containers.Logger, opts.Containers.Limits = opts.Logger, opts.Limits
	if opts.Egress == nil {
		opts.Egress = egress.New(egress.Options{})
	}
	opts.Remote.Logger, opts.Remote.Door = opts.Logger, opts.Egress
	told := pushes.NewFeature(opts.Pushes)
	told.Render(opts.Render)
	opts.Features = append(
		[]feature.Feature{
			models.New(opts.Models), upstreams.New(opts.Upstreams), egresses.New(opts.Egress), artifacts.New(),
			messages.New(), memories.New(opts.Models.Transcript), told, webhooks.New(told), schedules.New(nil), mcpsessions.New(0),
		},
		opts.Features...)
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
	h.Service, h.closed = service, false
}

// Start makes a Service and has it go on with the runs of the one before.
func (h *Harness) Start() {
	h.Helper()
	h.Open()
	if err := h.Service.Start(access.WithServer(context.Background())); err != nil {
		h.Fatal(err)
	}
	if h.Settings.Beside != nil {
		h.endBeside = h.Settings.Beside(h)
	}
}

// Stop ends the Service at once: what runs in containers goes on without it.
func (h *Harness) Stop() {
	h.Helper()
	h.closed = true
	if h.endBeside != nil {
		h.endBeside()
		h.endBeside = nil
	}
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
	return h.Send(spool.Submission{Unit: unit, Input: JSON(input)})
}

// Send has a submission accepted, and returns the id of its run.
func (h *Harness) Send(sub spool.Submission) string {
	h.Helper()
	record, _, err := h.Service.Submit(access.WithServer(context.Background()), sub)
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
	ctx, cancel := context.WithTimeout(access.WithServer(context.Background()), testkit.Patience)
	defer cancel()
	if _, err := h.Service.Runs.Await(ctx, id); err != nil {
		h.Fatal(err)
	}
	return h.Until(id, run.Over)
}

// Until returns a run when something is so.
func (h *Harness) Until(id string, is func(api.Record) bool) (record api.Record) {
	h.Helper()
	h.Within("run "+id, func() bool {
		var err error
		if record, err = h.Service.Runs.Get(access.WithServer(context.Background()), id); err != nil {
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

// NothingLeft ends the Service when all runs have come to their ends: it has let nothing lie about. It
// holds at the end of every test.
func (h *Harness) NothingLeft() {
	h.Helper()
	ctx, cancel := context.WithTimeout(access.WithServer(context.Background()), testkit.Patience)
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
