package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	theRun  = "0199aaaa-0000-7000-8000-000000000001"
	theCall = "0199aaaa-0000-7000-8000-000000000002"

	filePath   = `{"type": "string", "format": "file_path"}`
	workSchema = `{
	  "input": {"type": "object", "properties": {"n": {"type": "integer"}, "doc": ` + filePath + `}},
	  "output": {"type": "object", "properties": {"doc": ` + filePath + `}}
	}`
	oneCall = `{nodes: {a: {run: worker, with: {n: "${{ input.n }}"}, set: {n: "${{ out.n }}"}, action: done}}, output: {n: "${{ state.n }}"}}`
)

// harness carries out runs of a flow without a loop around them: its calls end as calls says.
type harness struct {
	t     *testing.T
	kind  *Flows
	unit  *unit.Unit
	calls *fakeCalls
	host  *fakeHost
	input string
	dir   string // of each run
	extra any
}

// newBench has the flow "f" with a graph, beside the unit "worker".
func newBench(t *testing.T, graph string) *harness { return newBenchOf(t, workSchema, graph) }

// newBenchOf has the flow "f" with a contract of its own.
func newBenchOf(t *testing.T, schema, graph string) *harness {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"agent.yaml": "name: f\nkind: flow\n", "schema.json": schema, "flow.yaml": graph} {
		write(t, filepath.Join(dir, name), content)
	}
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err, fault.Public(err).Findings)
	}
	worker, found := contract.Parse([]byte(workSchema))
	if worker == nil {
		t.Fatal(found)
	}
	calls := &fakeCalls{units: map[string]*handoff.Unit{"worker": {Name: "worker", Contract: worker}}, gives: `{"n": 7}`}
	return &harness{t: t, kind: New(nil), unit: unit.Of(c), calls: calls, host: &fakeHost{calls: calls}, input: `{"n": 1}`, dir: t.TempDir()}
}

// execution makes the attempts of a new run.
func (b *harness) execution() *execution {
	b.t.Helper()
	input, err := contract.Decode([]byte(b.input), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	r := run.New(theRun, run.Request{Unit: b.unit, Input: input, Extra: b.extra}, run.Input{Payload: input}, runtime.DefaultLimits())
	r.Attempt, r.Dir, r.Durable, r.Grants = 1, b.dir, true, b.unit.Policy.Grants
	r.LedBy(b.host, nil)
	return b.kind.Execution(r).(*execution)
}

// resumed makes the attempts of a run that began a while ago, in an earlier process.
func (b *harness) resumed(ago time.Duration) *execution {
	b.t.Helper()
	x := b.execution()
	began := time.Now().Add(-ago)
	x.Record.StartedAt = &began
	x.Record.Transitions = append(x.Record.Transitions, api.Transition{State: api.Starting}, api.Transition{State: api.Running})
	return x
}

// ends makes one attempt of a new run. It can't have an error.
func (b *harness) ends() run.Result {
	b.t.Helper()
	got, err := b.execution().Attempt(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

// newHost is the host of a walk of a new run.
func (b *harness) newHost() *host {
	x := b.resumed(0)
	return x.newHost()
}

// file makes a file of the engine's, as a call gives it.
func (b *harness) file(name, content string) handoff.Output {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "made")
	write(b.t, path, content)
	return handoff.Output{Name: name, Path: path, SizeBytes: int64(len(content)), SHA256: digestOf(content)}
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fakeCalls are the child runs of an attempt. Each ends at once with what gives says.
type fakeCalls struct {
	run.ChildRuns // what isn't here is not asked for

	units    map[string]*handoff.Unit
	gives    string // the output of each call
	files    []handoff.Output
	starting func(n int) error // nil: each call starts; n counts from 1
	awaiting func(ctx context.Context) (handoff.Result, error)
	inCancel func() handoff.Result // as a call stands when it is cancelled; nil: cancelled

	started   []handoff.Call
	contents  []map[string]string // of the files of each call that was asked for
	cancelled []string            // the reasons
	ended     error               // the cause that End had; nil: it wasn't called
}

func (f *fakeCalls) Keys() []string { return nil }

func (f *fakeCalls) Unit(_ context.Context, name string) (*handoff.Unit, error) {
	if u := f.units[name]; u != nil {
		return u, nil
	}
	return nil, fault.New(fault.NotFound, "there is no unit %q", name).WithHint("aod list has them")
}

func (f *fakeCalls) Start(_ context.Context, call handoff.Call) (string, error) {
	contents := map[string]string{}
	for _, file := range call.Files {
		raw, err := io.ReadAll(file.Open)
		if err != nil {
			return "", err
		}
		contents[file.Name] = string(raw)
	}
	f.contents = append(f.contents, contents)
	if f.starting != nil {
		if err := f.starting(len(f.contents)); err != nil {
			return "", err
		}
	}
	f.started = append(f.started, call)
	return theCall, nil
}

func (f *fakeCalls) Await(ctx context.Context, id string) (handoff.Result, error) {
	switch {
	case len(f.cancelled) > 0 && f.inCancel != nil:
		return f.inCancel(), nil
	case len(f.cancelled) > 0:
		return handoff.Result{ID: id, Ended: true, State: "cancelled"}, nil
	case f.awaiting != nil:
		return f.awaiting(ctx)
	}
	return handoff.Result{ID: id, Ended: true, State: "completed", Success: true, Output: json.RawMessage(f.gives), Files: f.files}, nil
}

func (f *fakeCalls) Cancel(_ context.Context, _, reason string) error {
	f.cancelled = append(f.cancelled, reason)
	return nil
}

func (f *fakeCalls) End(cause error) { f.ended = cause }

// failing has each call end so.
func failing(failure *handoff.Failure) func(context.Context) (handoff.Result, error) {
	return func(context.Context) (handoff.Result, error) {
		return handoff.Result{ID: theCall, Ended: true, State: "failed", Error: failure}, nil
	}
}

// fakeHost leads a run without a loop or a store.
type fakeHost struct {
	run.Host // what isn't here is not asked for

	calls     run.ChildRuns
	saveAt    api.State // the transition that can't be stored
	broken    error     // of that, or of each step
	cancelled error
	admission context.Context //nolint:containedctx // of one test; nil: it doesn't end
	kept      []flow.Step     // by an earlier process
	answer    func(run.Question) (run.Answer, error)
	earlier   map[run.CachedCall]handoff.Result

	states     []api.State
	steps      []flow.Step
	asked      []run.Question
	told       []run.Event
	remembered map[run.CachedCall]string
}

func (h *fakeHost) Calls() run.ChildRuns { return h.calls }

func (h *fakeHost) CancelRequest() error { return h.cancelled }

func (h *fakeHost) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.admission == nil {
		return ctx, func() {}
	}
	waiting, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.admission, func() { cancel(context.Cause(h.admission)) })
	return waiting, func() { stop(); cancel(nil) }
}

func (h *fakeHost) Save(transition api.Transition) error {
	if transition.State == h.saveAt {
		return h.broken
	}
	h.states = append(h.states, transition.State)
	return nil
}

func (h *fakeHost) Note(event run.Event) { h.told = append(h.told, event) }

func (h *fakeHost) Steps(context.Context) ([]flow.Step, error) { return h.kept, nil }

func (h *fakeHost) KeepStep(step flow.Step) error {
	if h.broken != nil && h.saveAt == "" {
		return h.broken
	}
	h.steps = append(h.steps, step)
	return nil
}

func (h *fakeHost) Ask(_ context.Context, q run.Question) (run.Answer, error) {
	h.asked = append(h.asked, q)
	return h.answer(q)
}

func (h *fakeHost) Earlier(_ context.Context, c run.CachedCall) (handoff.Result, bool) {
	result, ok := h.earlier[c]
	return result, ok
}

func (h *fakeHost) Remember(_ context.Context, c run.CachedCall, id string) {
	if h.remembered == nil {
		h.remembered = map[run.CachedCall]string{}
	}
	h.remembered[c] = id
}

// rows are steps as "ADDRESS~TRY STATE".
func rows(steps []flow.Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, fmt.Sprintf("%s~%d %s", s.Address, s.Try, s.State))
	}
	return all
}

// entries are the names in a directory, with what the regular files hold.
func entries(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		raw, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return maps.Clone(found)
}
