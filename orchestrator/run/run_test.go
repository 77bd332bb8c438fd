package run

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

func TestANewRunIsAccepted(t *testing.T) {
	input, err := contract.NewPayload(map[string]any{"key": secret})
	if err != nil {
		t.Fatal(err)
	}
	u := &unit.Unit{Name: "u", Kind: unit.Agent, Policy: unit.Policy{Masking: unit.MaskTexts}}
	r := New("id", Request{Unit: u, Timeout: time.Second}, Input{Payload: input}, runtime.Limits{PIDs: 7})
	if r.State() != api.Idle || r.Record.Status != api.Queued || r.Record.Files == nil || r.Record.Root != "id" || r.Record.Parent != "" || r.Limits.PIDs != 7 || r.Limits.Timeout != time.Second || r.Record.Kind != "agent" {
		t.Errorf("%+v", r.Record)
	}
	if string(r.Record.Input) != `{"key":"****mnop"}` || !r.Record.InputMasked || string(r.Input.Payload.JSON()) != `{"key":"`+secret+`"}` {
		t.Errorf("its record has %s, and it gets %s", r.Record.Input, r.Input.Payload.JSON())
	}
	above := NewLineage("root", u).Child("", u, time.Time{})
	child := New("child", Request{Unit: &unit.Unit{Name: "u"}, Lineage: &above}, Input{}, runtime.Limits{})
	if child.Record.Parent != "root" || child.Record.Root != "root" || child.Lineage.Path[1].Run != "child" || child.Record.InputMasked || string(child.Record.Input) != "{}" {
		t.Errorf("%+v, path %+v", child.Record, child.Lineage.Path)
	}
}

func TestTheDirectoriesOfARun(t *testing.T) {
	r := &Run{Dir: "/runs/1", Attempt: 3}
	below := func() []string {
		return []string{r.InputDir(), r.StateDir(), r.BaseDir(), r.ManifestFile(), r.ChangesDir(), r.ArtifactsDir(), r.OutputDir(), r.AttemptDir()}
	}
	want := []string{"/runs/1/input", "/runs/1/state", "/runs/1/base", "/runs/1/base.json", "/runs/1/changes", "/runs/1/artifacts", "/runs/1/output", "/runs/1/3"}
	for name, session := range map[string]*Session{"of no session": nil, "of a session without a project": {Dir: "/sessions/1"}} {
		r.Session = session
		if diff := cmp.Diff(want, below()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	r.Session = &Session{Dir: "/sessions/1", Project: true} // which got the project, not the run
	want[2], want[3] = "/sessions/1/base", "/sessions/1/base.json"
	if diff := cmp.Diff(want, below()); diff != "" {
		t.Error(diff)
	}
}

// keepSteps is a host that keeps steps, or can't.
type keepSteps struct {
	Host
	err  error
	kept []flow.Step
}

func (k *keepSteps) KeepStep(s flow.Step) error {
	k.kept = append(k.kept, s)
	return k.err
}

func TestAStepIsToldWhenItIsKept(t *testing.T) {
	host := &keepSteps{}
	var told []Event
	r := &Run{ID: "id", Record: api.Record{Unit: "u"}, Lineage: Lineage{Parent: "p"}}
	r.LedBy(host, func(e Event) { told = append(told, e) })
	step := flow.Step{Address: "a#2", Try: 3, State: flow.Failed, Run: "r", Cached: true, Action: "x", Delta: []byte(`{"secret":1}`), Failure: &flow.Failure{Kind: "k", Message: "secret"}}
	if err := r.KeepStep(step); err != nil {
		t.Fatal(err)
	}
	want := []Event{{Run: "id", Unit: "u", Parent: "p", Data: api.NodeEvent{Address: "a#2", Try: 3, State: api.FailedStep, Run: "r", Cached: true, Action: "x", ErrorKind: "k"}}}
	if diff := cmp.Diff(want, told); diff != "" { // without its values
		t.Error(diff)
	}
	host.err = runtime.ErrDetach
	if err := r.KeepStep(step); !errors.Is(err, runtime.ErrDetach) || len(told) != 1 {
		t.Errorf("%v, told %d", err, len(told))
	}
}

func TestTheInputOfAFlowThatIsKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, FlowInputFile)
	if got, err := FlowInput(dir); got != nil || err != nil {
		t.Errorf("nothing is kept: %v, %v", got, err)
	}
	want := map[string]any{"n": int64(1), "f": flow.File{Name: "a", SizeBytes: 1, SHA256: strings.Repeat("0", 64)}}
	raw, err := flow.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(raw))
	got, err := FlowInput(dir)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	write(t, file, "{")
	if got, err := FlowInput(dir); got != nil || !fault.Is(err, fault.Internal) {
		t.Errorf("damaged: %v, %v", got, err)
	}
	if got, err := FlowInput(file); got != nil || !fault.Is(err, fault.Unavailable) {
		t.Errorf("below a file: %v, %v", got, err)
	}
}

func TestAResultThatCantBeRead(t *testing.T) {
	got := Unreadable(fault.New(fault.Internal, "x").WithHint("h"))
	if got.State != api.Failed || got.Outcome != api.SystemError || got.Failure.Category != api.CategorySystem || got.Failure.Kind != "internal" || got.Failure.Hint != "h" {
		t.Errorf("%+v %+v", got, got.Failure)
	}
	if StorageFault(nil) != nil {
		t.Error("nothing is a fault")
	}
	if err := StorageFault(io.ErrShortWrite); !fault.Is(err, fault.Unavailable) || !errors.Is(err, io.ErrShortWrite) || !strings.Contains(fault.Public(err).Hint, "aod prune") {
		t.Errorf("%v", err)
	}
}

func TestACallerHasWhatItsRunHas(t *testing.T) {
	input, err := contract.NewPayload(map[string]any{"n": 1})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Hour)
	r := &Run{ID: "id", Unit: &unit.Unit{Name: "new"}, Input: Input{Payload: input}, Lineage: NewLineage("id", &unit.Unit{Name: "u"}), Grants: []string{"a"}, Record: api.Record{Unit: "u", StartedAt: &began}}
	r.Record.Transitions = []api.Transition{{State: api.Running}}
	r.Limits.Timeout = 2 * time.Hour
	caller := r.Broker(oldKeys{}, nil).Caller()
	want := handoff.Caller{Run: "id", Root: "id", Unit: "u", Path: r.Lineage.Path, Tree: r.Lineage.Tree, Deadline: began.Add(2 * time.Hour), Grants: []string{"a"}, Input: []byte(`{"n":1}`)}
	if diff := cmp.Diff(want, caller, cmp.Comparer(func(a, b *handoff.Tree) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// oldKeys are child runs of which an earlier process made some.
type oldKeys struct{ ChildRuns }

func (oldKeys) Keys() []string { return []string{"old"} }
