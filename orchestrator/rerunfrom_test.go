package orchestrator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func (w *fixture) rerunFrom(id string, from api.Rerun) api.Record {
	w.t.Helper()
	record, _, err := w.service.Rerun(trusted.Context(w.t), id, "", from)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.await(record.ID)
}

func TestAFlowIsRunAgainFromAStep(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, chainGraph)
	w.open("g")
	first := w.await(w.submitTo("f", chainInput{1, "g"}))
	again := w.rerunFrom(first.ID, api.Rerun{From: "c"})
	if again.Outcome != api.Success || string(again.Output) != string(first.Output) || again.RerunOf != first.ID {
		t.Fatalf("record %s", show(again))
	}
	for mark, times := range map[string]int{"a-1": 1, "b": 1, "a-1b": 2} {
		if w.starts(mark) != times {
			t.Errorf("%s was started %d times, want %d", mark, w.starts(mark), times)
		}
	}
	if diff := cmp.Diff([]string{"a~1 done", "b~1 done", "c~1 done"}, w.steps(again.ID)); diff != "" {
		t.Error(diff)
	}
	other := w.rerunFrom(first.ID, api.Rerun{From: "c", Set: json.RawMessage(`{"a": "x"}`)})
	if other.Outcome != api.Success || string(other.Output) != `{"all":"xb","n":1}` || w.starts("a-1") != 1 {
		t.Errorf("with another state: %s", show(other))
	}
}

func TestAFlowIsRunAgainFromWhatHasFailed(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `
start: a
nodes:
  a:
    map: ${{ input.marks }}
    as: mark
    run: worker
    tolerate: 100%
    with: {mark: "${{ mark }}", exit: "${{ mark == input.bad ? 3 : 0 }}"}
    collect: ${{ out.mark }}
    set: {all: "${{ out }}"}
output: {all: "${{ state.all }}"}
`)
	first := w.await(w.submitTo("f", map[string]any{"marks": []string{"m0", "m1", "m2"}, "bad": "m1"}))
	if string(first.Output) != `{"all":["m0",null,"m2"]}` {
		t.Fatalf("record %s", show(first))
	}
	again := w.rerunFrom(first.ID, api.Rerun{From: api.RerunFailed})
	if string(again.Output) != `{"all":["m0",null,"m2"]}` {
		t.Errorf("record %s", show(again))
	}
	for mark, times := range map[string]int{"m0": 1, "m1": 2, "m2": 1} {
		if w.starts(mark) != times {
			t.Errorf("%s was started %d times, want %d", mark, w.starts(mark), times)
		}
	}
}

// The files of a state go along: the earlier run may be forgotten then.
func TestARerunHasTheFilesOfTheState(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `
start: a
nodes:
  a: {run: worker, with: {mark: a, file: report.txt}, set: {f: "${{ out.file }}"}, next: b}
  b: {run: worker, with: {mark: b}}
output: {file: "${{ state.f }}"}
`)
	first := w.await(w.submitTo("f", map[string]any{}))
	again := w.rerunFrom(first.ID, api.Rerun{From: "b"})
	if again.Outcome != api.Success || w.starts("a") != 1 || w.starts("b") != 2 {
		t.Fatalf("record %s", show(again))
	}
	state, err := w.service.Flows.State(trusted.Context(t), again.ID)
	if err != nil || len(state.Files) != 1 {
		t.Fatalf("%+v, %v", state, err)
	}
	f, _, err := w.service.Flows.OpenStateFile(trusted.Context(t), again.ID, state.Files[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if string(again.Output) != string(first.Output) {
		t.Errorf("%s and %s", first.Output, again.Output)
	}
}

func TestRerunsThatCanNotBe(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, chainGraph)
	w.open("g")
	first := w.await(w.submitTo("f", chainInput{1, "g"}))
	plain := w.await(w.submit(orders{Mark: "plain"}))
	for name, c := range map[string]struct {
		id   string
		from api.Rerun
		kind fault.Kind
		says string
	}{
		"of a capsule":               {plain.ID, api.Rerun{From: "a"}, fault.Conflict, "a flow"},
		"from nowhere":               {first.ID, api.Rerun{From: "nobody"}, fault.Conflict, "nobody"},
		"from what isn't an address": {first.ID, api.Rerun{From: "a b"}, fault.BadRequest, "not the address"},
		"with what isn't an object":  {first.ID, api.Rerun{From: "b", Set: json.RawMessage(`[1]`)}, fault.BadRequest, "object"},
		"of failures with an object": {first.ID, api.Rerun{From: api.RerunFailed, Set: json.RawMessage(`{}`)}, fault.BadRequest, "nothing can be set"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := w.service.Rerun(trusted.Context(t), c.id, "", c.from)
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}
