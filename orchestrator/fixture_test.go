package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
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
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// orders is the input of the unit "worker": what its program does.
type orders struct {
	Mark  string `json:"mark,omitempty"`  // is counted when the program starts
	Until string `json:"until,omitempty"` // a gate that it waits for
	After int    `json:"after,omitempty"` // lines of log behind the gate
	Exit  int    `json:"exit,omitempty"`
	Lines int    `json:"lines,omitempty"` // of log
	File  string `json:"file,omitempty"`  // an output file to write
	Doc   string `json:"doc,omitempty"`   // an input file to copy into it
}

var workerFiles = map[string]string{
	"Dockerfile": "FROM " + dockertest.Image + "\nCMD [\"worker\"]\n",
	"tools.yaml": "[]\n",
	"agent.yaml": "name: worker\nlimits: {timeout: 2m}\n",
	"schema.json": `{
	  "input": {"type": "object", "properties": {
	    "mark": {"type": "string"}, "until": {"type": "string"}, "exit": {"type": "int"}, "lines": {"type": "int"}, "after": {"type": "int"},
	    "file": {"type": "string"}, "doc": {"type": "string", "format": "file_path"}
	  }, "additionalProperties": false},
	  "output": {"type": "object", "properties": {
	    "mark": {"type": "string"}, "file": {"type": "string", "format": "file_path"}
	  }}
	}`,
}

// settings are those of a Service and its kinds.
type settings struct {
	Options
	Containers container.Options
	Secrets    string
	Models     models.Models
	Upstreams  *upstream.Upstreams
	Egress     *egress.Door // default one without exceptions
	Clock      schedules.Clock
	watched    bool // see fixture.claiming
	Pushes     pushes.Options
	render     pushes.Render
	fixture    *fixture
}

// service opens a Service over an engine, with the kinds of unit that there are.
func (s settings) service(engine container.Engine) (*Service, error) {
	service, _, err := s.open(engine)
	return service, err
}

func (s settings) open(engine container.Engine) (*Service, *container.Containers, error) {
	s.Containers.Logger, s.Containers.Limits = s.Logger, s.Limits
	if s.Egress == nil {
		s.Egress = egress.New(egress.Options{})
	}
	s.Features = []feature.Feature{models.New(s.Models), upstreams.New(s.Upstreams), egresses.New(s.Egress), artifacts.New(), messages.New(), memories.New(s.Models.Transcript)}
	told := pushes.NewFeature(s.Pushes)
	told.Render(s.render)
	s.Features = append(s.Features, told, webhooks.New(told), schedules.New(s.Clock), mcpsessions.New(0))
	containers := container.New(engine, s.Containers)
	s.Kinds = kindsOver(containers, remote.New(remote.Options{Logger: s.Logger, Secrets: secrets.Files{Dir: s.Secrets}, Door: s.Egress}))
	if s.watched {
		s.Kinds[string(unit.Capsule)] = watchedKind{containers, s.fixture}
	}
	service, err := NewService(s.Options)
	if s.fixture != nil {
		s.fixture.latest.Store(service)
	}
	return service, containers, err
}

func kindsOver(containers *container.Containers, agents *remote.Agents) run.Kinds {
	return run.Kinds{string(unit.Capsule): containers, string(unit.AU): containers, string(unit.Agent): containers, string(unit.Remote): agents, string(unit.Flow): kindflow.New(nil)}
}

func (w *fixture) schedules() *schedules.Scheduler {
	found, _ := FeatureOf[*schedules.Scheduler](w.service)
	return found
}

// fixture is a world in which Services come and go over one home and one engine.
type fixture struct {
	t            *testing.T
	engine       *enginetest.Fake
	opts         settings
	service      *Service
	inContainers *container.Containers   // the kind of the service
	latest       atomic.Pointer[Service] // the newest service, before it has started
	claims       func()                  // is called in the middle of the next claim; nil: nothing is

	mu      sync.Mutex
	started map[string]int           // programs, by mark
	gates   map[string]chan struct{} // by name
	broken  map[string]error         // by the engine's method
	absence absence
	hung    map[string]chan struct{} // by the engine's method: closed when that goes on
	answers map[string][]string      // to the handoffs of a caller, by its mark

	load   func(context.Context, loading) (exit int) // what the program of "asker" does before it asks; not 0 ends it
	known  map[string]*pool.Sandbox                  // sandboxes that were seen to wait, by id
	ending func(code int) int                        // what a container does after its program's good end
}

func newFixture(t *testing.T, change ...func(*settings)) *fixture {
	t.Helper()
	w := &fixture{t: t, started: map[string]int{}, gates: map[string]chan struct{}{}, broken: map[string]error{}, answers: map[string][]string{}, known: map[string]*pool.Sandbox{}}
	w.engine = enginetest.NewFake(w.ended(enginetest.WithInit(w.program)))
	w.engine.AddImage(runtime.Image{ID: "sha256:debian", Tags: []string{dockertest.Image}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64"})
	w.engine.Lost = func(method string) error { return w.meets(method, true) }
	w.engine.Hook = func(ctx context.Context, method string) error {
		if err := w.hangs(ctx, method); err != nil {
			return err
		}
		if err := w.meets(method, false); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		err := w.broken[method]
		if passing := (passes{}); errors.As(err, &passing) {
			delete(w.broken, method)
			return passing.error
		}
		return err
	}
	sources := t.TempDir()
	for name, content := range workerFiles {
		write(t, filepath.Join(sources, "worker", name), content)
	}
	w.opts = settings{Options: Options{
		Home: filepath.Join(t.TempDir(), "server"), Sources: []string{sources},
		Concurrency: 4, RetryDelay: time.Millisecond, Retries: 3, Units: map[string]units.Settings{},
	}, Containers: container.Options{Units: map[string]container.Extra{}}}
	w.opts.fixture = w
	for _, c := range change {
		c(&w.opts)
	}
	t.Cleanup(w.nothingLeft)
	w.start()
	return w
}

func (w *fixture) start() {
	w.t.Helper()
	s, containers, err := w.opts.open(w.engine)
	if err != nil {
		w.t.Fatal(err)
	}
	w.inContainers = containers
	if err := s.Start(trusted.Context(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.service = s
}

// stop ends the service at once: what runs goes on without it.
func (w *fixture) stop() {
	w.t.Helper()
	if err := w.service.Close(); err != nil {
		w.t.Error(err)
	}
}

// dieCancelling has a process die between storing a request to cancel, "because", and acting on it.
func (w *fixture) dieCancelling(id string) {
	w.t.Helper()
	s, err := w.opts.service(w.engine)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.store.Events.Append(trusted.Context(w.t), id, newEvent(time.Now(), api.CancelEvent{Reason: "because"})); err != nil {
		w.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// program does what its orders are.
func (w *fixture) program(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	dir := map[string]string{}
	for _, m := range spec.Mounts {
		dir[m.Target] = m.Source
	}
	if spec.Labels[runtime.LabelUnit] == "reader" {
		return w.readerProgram(spec, dir)
	}
	if spec.Labels[runtime.LabelUnit] == "teller" {
		return tellerProgram(spec, dir)
	}
	if spec.Labels[runtime.LabelUnit] == "asker" {
		if code := w.asks(ctx, dir, stdout); code != 0 {
			return code
		}
	}
	if spec.Labels[runtime.LabelUnit] == "several" {
		return w.severalProgram(ctx, dir, stdout, stderr)
	}
	raw, err := os.ReadFile(filepath.Join(dir["/io"], "input.json"))
	if err == nil && spec.Labels[runtime.LabelUnit] == "caller" {
		return w.callerProgram(ctx, dir, raw)
	}
	var o orders
	if err != nil || json.Unmarshal(raw, &o) != nil {
		return 99
	}
	w.mu.Lock()
	w.started[o.Mark]++
	w.mu.Unlock()
	for n := range o.Lines {
		fmt.Fprintf(stdout, "line %d\n", n)
	}
	if o.Until != "" {
		select {
		case <-w.gate(o.Until):
		case <-ctx.Done():
			return 137
		}
	}
	for n := range o.After {
		fmt.Fprintf(stdout, "after %d\n", n)
	}
	if o.File != "" {
		content := []byte("content of " + o.Mark)
		if o.Doc != "" {
			if content, err = os.ReadFile(filepath.Join(dir["/io/input"], o.Doc)); err != nil {
				return 98
			}
		}
		_ = os.WriteFile(filepath.Join(dir["/io"], "output", o.File), content, 0o600)
	}
	result, _ := json.Marshal(map[string]string{"mark": o.Mark, "file": o.File})
	if o.File == "" {
		result, _ = json.Marshal(map[string]string{"mark": o.Mark})
	}
	_ = os.WriteFile(filepath.Join(dir["/io"], "output.json"), result, 0o600)
	return o.Exit
}

func (w *fixture) gate(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gates[name] == nil {
		w.gates[name] = make(chan struct{})
	}
	return w.gates[name]
}

func (w *fixture) open(gate string) { close(w.gate(gate)) }

// passes is an error that a method of the engine returns once.
type passes struct{ error }

func (w *fixture) breaks(method string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[method] = err
}

// hang has a method of the engine answer nothing until the channel is closed.
func (w *fixture) hang(method string, until chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hung = map[string]chan struct{}{method: until}
}

// hangs returns when a method doesn't hang any more, or an error when ctx ends.
func (w *fixture) hangs(ctx context.Context, method string) error {
	w.mu.Lock()
	until := w.hung[method]
	w.mu.Unlock()
	if until == nil {
		return nil
	}
	select {
	case <-until:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// submit has a run accepted.
func (w *fixture) submit(o orders) string {
	w.t.Helper()
	return w.submitTo("worker", o)
}

func (w *fixture) submitTo(unit string, input any) string {
	w.t.Helper()
	record, _, err := w.service.Submit(trusted.Context(w.t), spool.Submission{Unit: unit, Input: encoded(input)})
	if err != nil {
		w.t.Fatal(err)
	}
	return record.ID
}

func encoded(input any) json.RawMessage {
	raw, _ := json.Marshal(input)
	return raw
}

// await returns a run at its very end.
func (w *fixture) await(id string) api.Record {
	w.t.Helper()
	patient, cancel := context.WithTimeout(trusted.Context(w.t), testkit.Patience)
	defer cancel()
	told, err := w.service.Runs.Await(patient, id) // to read a large record again and again takes long
	if err != nil {
		w.t.Fatal(err)
	}
	kept := w.until(id, run.Over)
	wantAsTold(w.t, told, kept)
	return kept
}

func (w *fixture) until(id string, is func(api.Record) bool) api.Record {
	w.t.Helper()
	var record api.Record
	within(w.t, func() bool {
		var err error
		if record, err = w.service.Runs.Get(trusted.Context(w.t), id); err != nil {
			w.t.Fatal(err)
		}
		return is(record)
	}, func() string { return show(record) })
	return record
}

// within polls until something is so.
func within(t *testing.T, is func() bool, otherwise func() string) {
	t.Helper()
	if !testkit.Within(testkit.Patience, is) {
		t.Fatalf("it didn't come to that: %s", otherwise())
	}
}

func running(r api.Record) bool { return r.State == api.Running }

// starts returns how often a program began.
func (w *fixture) starts(mark string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started[mark]
}

// nothingLeft holds at the end of every test: all runs have come to theirs.
func (w *fixture) nothingLeft() {
	t := w.t
	if t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	w.service.Shutdown(ctx, true)
	if err := w.service.Close(); err != nil {
		t.Error(err)
	}
	containers, err := w.engine.ContainersByLabel(ctx, map[string]string{runtime.LabelRun: ""})
	if err != nil || len(containers) > 0 {
		t.Errorf("containers left: %v %v", containers, err)
	}
	for _, dir := range []string{"spool/*", "pool/*", "runs/*/[0-9]*", "runs/*/lock"} {
		if left, _ := filepath.Glob(filepath.Join(w.opts.Home, dir)); len(left) > 0 {
			t.Errorf("files left: %v", left)
		}
	}
}

func states(r api.Record) string {
	var all []string
	for _, tr := range r.Transitions {
		all = append(all, string(tr.State))
	}
	return strings.Join(all, " ")
}
