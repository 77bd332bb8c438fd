package orchestrator

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// newDeepFixture has flows f, g and h in each other, of which h runs "worker" twice: at once, and
// until a gate opens.
func newDeepFixture(t *testing.T, agent string, change ...func(*settings)) *fixture {
	t.Helper()
	return newFixture(t, append([]func(*settings){func(s *settings) {
		flowOf(t, s, "f", agent, anyContract, `{start: first, nodes: {first: {set: {kept: yes}, next: in}, in: {run: g}}}`)
		flowOf(t, s, "g", "", anyContract, `{nodes: {in: {run: h}}}`)
		flowOf(t, s, "h", "", anyContract, `{start: one, nodes: {one: {run: worker, with: {mark: one}, next: two}, two: {run: worker, with: {mark: two, until: never}}}}`)
	}}, change...)...)
}

// callsBelow lists the runs below one as "UNIT OUTCOME", when all have ended.
func (w *fixture) callsBelow(id string) (all []string) {
	w.t.Helper()
	var collect func(id string) bool
	collect = func(id string) bool {
		page, err := w.service.store.Runs.List(trusted.Context(w.t), store.Filter{Parent: id, Limit: 100})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, row := range page.Runs {
			record, err := w.service.Runs.Get(trusted.Context(w.t), row.ID)
			if err != nil {
				w.t.Fatal(err)
			}
			all = append(all, record.Unit+" "+string(record.Outcome))
			if record.Outcome == "" || !collect(record.ID) {
				return false
			}
		}
		return true
	}
	within(w.t, func() bool {
		all = nil
		return collect(id)
	}, func() string { return fmt.Sprint(all) })
	slices.Sort(all)
	return all
}

func TestTheTimeOfACallerHoldsForTheFlowsBelowIt(t *testing.T) {
	t.Parallel()
	for limit := 2 * time.Second; ; limit *= 5 {
		w := newDeepFixture(t, fmt.Sprintf("limits: {timeout: %v}\n", limit))
		began := time.Now()
		id := w.submitTo("f", chainInput{})
		record := w.await(id)
		if record.Outcome != api.TimedOut || time.Since(began) < limit/2 {
			t.Fatalf("after %v: record %s", time.Since(began), show(record))
		}
		if w.starts("two") == 0 && limit < 30*time.Second { // a busy machine may take longer to come so far
			continue
		}
		calls := w.callsBelow(id)
		if len(calls) != 4 || slices.Contains(calls, "g success") || slices.Contains(calls, "h success") {
			t.Errorf("below it: %q", calls)
		}
		return
	}
}

func TestACancelledFlowEndsAllBelowItAndKeepsWhatWasFinished(t *testing.T) {
	t.Parallel()
	w := newDeepFixture(t, "")
	id := w.submitTo("f", chainInput{})
	within(t, func() bool { return w.starts("two") == 1 }, func() string { return fmt.Sprint(w.steps(id)) })
	if _, err := w.service.Cancel(trusted.Context(t), id, "because"); err != nil {
		t.Fatal(err)
	}
	if record := w.await(id); record.Outcome != api.WasCancelled {
		t.Errorf("record %s", show(record))
	}
	if calls := w.callsBelow(id); !slices.Equal(calls, []string{"g cancelled", "h cancelled", "worker cancelled", "worker success"}) {
		t.Errorf("below it: %q", calls)
	}
	state, err := w.service.Flows.State(trusted.Context(t), id)
	if err != nil || !strings.Contains(string(state.State), `"kept"`) {
		t.Errorf("state %s, %v", state.State, err)
	}
}

func TestTheTreesRulesHoldForFlows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent  string
		change func(*settings)
		kind   string
	}{
		"depth": {"", func(s *settings) { s.Handoffs.Depth = 2 }, "depth"},
		"calls": {"budgets: {calls: 2}\n", func(*settings) {}, "calls"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeepFixture(t, c.agent, c.change)
			record := w.await(w.submitTo("f", chainInput{}))
			if record.Outcome != api.StepFailed || w.starts("one") != 0 || !strings.Contains(show(record), c.kind) {
				t.Errorf("%d started, record %s", w.starts("one"), show(record))
			}
		})
	}
}

// TestNoCanarySingsOfAFlow has a payload go through what a flow may do with one: nothing of it is
// in a log, an event, a metric or a trace.
func TestNoCanarySingsOfAFlow(t *testing.T) {
	const canary = "kanarienvogel"
	recorded := spans(t)
	var logged lockedBuffer
	w := newFixture(t, func(s *settings) {
		s.Logger = slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		flowOf(t, s, "f", "", anyContract, `
start: work
nodes:
  work: {run: worker, with: {mark: "${{ input.mark }}"}, set: {mark: "${{ out.mark }}"}, next: all}
  all: {map: "${{ [state.mark] }}", run: worker, with: {mark: "${{ item }}"}, next: fails}
  fails: {run: worker, with: {mark: "${{ state.mark }}", exit: 3}, next: {default: end, error: ask}}
  ask: {ask: "${{ state.mark }}?", show: {shown: "${{ state.mark }}"}, form: {type: object, properties: {why: {type: string}}}, next: number}
  number: {set: {n: "${{ int(state.mark) }}"}}
`)
	})
	id := w.submitTo("f", map[string]string{"mark": canary})
	q := w.asked()
	if !strings.Contains(q.Text, canary) {
		t.Fatalf("%+v", q)
	}
	if err := w.service.Questions.Answer(trusted.Context(t), q.ID, api.Answer{Action: "approve", Form: json.RawMessage(`{"why": "` + canary + `"}`), Note: canary, By: canary}); err != nil {
		t.Fatal(err)
	}
	if record := w.await(id); record.Outcome != api.StepFailed {
		t.Errorf("record %s", show(record))
	}
	var sung strings.Builder
	events, err := w.service.store.Events.List(trusted.Context(t), id, 0, 1000)
	if err != nil || len(events) < 5 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, event := range events {
		fmt.Fprintf(&sung, "event %s %s\n", event.Type, event.Data)
	}
	families, err := w.service.Metrics().Gather()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&sung, families, logged.String())
	for _, span := range recorded.Ended() {
		fmt.Fprintln(&sung, span.Name(), span.Attributes(), span.Events(), span.Status())
	}
	for line := range strings.Lines(sung.String()) {
		if strings.Contains(line, canary) {
			t.Errorf("it sings: %s", line)
		}
	}
}

// drawn writes a tree as UNIT.STEP OUTCOME RUNS, with what is below it.
func drawn(tree api.Tree) string {
	text := fmt.Sprintf("%s.%s %s %d", tree.Unit, tree.Step, tree.Outcome, tree.Runs)
	for _, call := range tree.Calls {
		text += " (" + drawn(call) + ")"
	}
	return text
}

func TestATreeIsTheRunWithAllBelowIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) {
		flowOf(t, s, "f", "", anyContract, `{nodes: {in: {run: g}}}`)
		flowOf(t, s, "g", "", anyContract, `{start: one, nodes: {one: {run: worker, with: {mark: one}, next: two}, two: {run: worker, with: {mark: two, exit: 3}}}}`)
	})
	id := w.submitTo("f", orders{})
	w.await(id)
	tree, err := w.service.Runs.Tree(trusted.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	const below = "(worker.one success 1) (worker.two "
	if got := drawn(tree); !strings.HasPrefix(got, "f. ") || !strings.Contains(got, below) || tree.Runs != 4 || tree.FinishedAt == nil || tree.Omitted != 0 {
		t.Errorf("%s: %+v", got, tree)
	}
	part, err := w.service.Runs.Tree(trusted.Context(t), tree.Calls[0].ID)
	if err != nil || !cmp.Equal(part, tree.Calls[0]) {
		t.Errorf("%+v, %v; want %+v", part, err, tree.Calls[0])
	}
}
