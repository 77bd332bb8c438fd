package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

const cachedGraph = `
start: a
nodes:
  a: {run: worker, cache: 24h, with: {mark: "${{ input.mark }}", file: report.txt, exit: "${{ input.exit ?? 0 }}"}, set: {f: "${{ out.file }}", m: "${{ out.mark }}"}, next: {default: end, error: b}}
  b: {set: {m: "${{ state.error.kind }}"}}
output: {mark: "${{ state.m }}"}
`

func (w *fixture) cachedSteps(id string) (cached int) {
	w.t.Helper()
	page, err := w.service.Flows.Steps(trusted.Context(w.t), id, records.StepFilter{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range page.Steps {
		if s.Cached {
			cached++
		}
	}
	return cached
}

func TestASuccessIsTakenAgain(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, cachedGraph)
	run := func(input map[string]any) api.Record { return w.await(w.submitTo("f", input)) }
	first, again := run(map[string]any{"mark": "x"}), run(map[string]any{"mark": "x"})
	if again.Outcome != api.Success || string(again.Output) != `{"mark":"x"}` || w.starts("x") != 1 || w.cachedSteps(again.ID) != 1 || w.cachedSteps(first.ID) != 0 {
		t.Fatalf("%d starts: %s", w.starts("x"), show(again))
	}
	state, err := w.service.Flows.State(trusted.Context(t), again.ID)
	if err != nil || len(state.Files) != 1 || !strings.Contains(string(state.State), "report.txt") {
		t.Errorf("%s, %v", state.State, err)
	}
	t.Run("with other arguments it isn't", func(t *testing.T) {
		if run(map[string]any{"mark": "y"}); w.starts("y") != 1 {
			t.Errorf("%d starts", w.starts("y"))
		}
	})
	t.Run("nor is a failure", func(t *testing.T) {
		for range 2 {
			if r := run(map[string]any{"mark": "z", "exit": 3}); string(r.Output) != `{"mark":"capsule_error"}` {
				t.Errorf("%s", show(r))
			}
		}
		if w.starts("z") != 2 {
			t.Errorf("%d starts", w.starts("z"))
		}
	})
	t.Run("nor one whose file is gone", func(t *testing.T) {
		var steps api.StepPage
		if steps, err = w.service.Flows.Steps(trusted.Context(t), first.ID, records.StepFilter{}); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(w.service.runPath(steps.Steps[0].Run), "output", "report.txt")); err != nil {
			t.Fatal(err)
		}
		if r := run(map[string]any{"mark": "x"}); r.Outcome != api.Success || w.starts("x") != 2 {
			t.Errorf("%d starts: %s", w.starts("x"), show(r))
		}
	})
	t.Run("nor that of another version of the unit", func(t *testing.T) {
		write(t, filepath.Join(w.opts.Sources[0], "worker", "agent.yaml"), "name: worker\nlimits: {timeout: 21s}\n")
		if r := run(map[string]any{"mark": "x"}); r.Outcome != api.Success || w.starts("x") != 3 {
			t.Errorf("%d starts: %s", w.starts("x"), show(r))
		}
	})
	t.Run("nor that of another team", func(t *testing.T) {
		before := w.starts("x")
		ctx := access.WithGrant(t.Context(), access.Grant{Name: "a", Scopes: []access.Scope{access.Run}, Teams: []string{"a"}})
		for range 2 { // the second one takes that of the first
			record, _, err := w.service.Submit(ctx, spool.Submission{Unit: "f", Input: []byte(`{"mark":"x"}`)})
			if err != nil {
				t.Fatal(err)
			}
			w.await(record.ID)
		}
		if started := w.starts("x") - before; started != 1 {
			t.Errorf("%d starts", started)
		}
	})
}
