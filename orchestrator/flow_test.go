package orchestrator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	kindflow "github.com/agent-on-demand/aod/orchestrator/kind/flow"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

const anyContract = `{"input": {"type": "object"}, "output": {"type": "object"}}`

// flowOf adds a unit of the kind flow to the sources of a fixture.
func flowOf(t *testing.T, s *settings, name, agent, schema, graph string) {
	t.Helper()
	for file, content := range map[string]string{
		"agent.yaml": "name: " + name + "\nkind: flow\n" + agent, "schema.json": schema, "flow.yaml": graph,
	} {
		write(t, filepath.Join(s.Sources[0], name, file), content)
	}
}

// newFlowFixture is a fixture with a flow "f" beside "worker".
func newFlowFixture(t *testing.T, graph string, change ...func(*settings)) *fixture {
	t.Helper()
	return newFixture(t, append([]func(*settings){func(s *settings) {
		flowOf(t, s, "f", "limits: {timeout: 1m}\n", anyContract, graph)
	}}, change...)...)
}

// steps lists the steps of a run as "ADDRESS~TRY STATE", in the order of their last changes.
func (w *fixture) steps(id string) (all []string) {
	w.t.Helper()
	page, err := w.service.Flows.Steps(trusted.Context(w.t), id, records.StepFilter{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range page.Steps {
		all = append(all, fmt.Sprintf("%s~%d %s", s.Address, s.Try, s.State))
	}
	return all
}

const chainGraph = `
start: a
nodes:
  a: {run: worker, with: {mark: "a-${{ input.n }}"}, set: {a: "${{ out.mark }}"}, next: b}
  b: {run: worker, with: {mark: b, until: "${{ input.gate }}"}, set: {b: "${{ out.mark }}"}, next: c}
  c: {run: worker, with: {mark: "${{ state.a + state.b }}"}, set: {c: "${{ out.mark }}"}, action: done}
output: {all: "${{ state.c }}", n: "${{ input.n }}"}
`

type chainInput struct {
	N    int    `json:"n"`
	Gate string `json:"gate"`
}

func TestAFlowIsAUnit(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, chainGraph)
	w.open("g")
	record := w.await(w.submitTo("f", chainInput{7, "g"}))
	if record.Outcome != api.Success || string(record.Output) != `{"all":"a-7b","n":7}` || states(record) != "idle starting running completed cleanup idle" {
		t.Fatalf("record %s", show(record))
	}
	if diff := cmp.Diff(&api.FlowCounts{Steps: 3, Action: "done"}, record.Flow); diff != "" || len(record.Calls) > 0 || record.Kind != "flow" {
		t.Errorf("record %s", show(record))
	}
	keepsSchema(t, record)
	if diff := cmp.Diff([]string{"a~1 done", "b~1 done", "c~1 done"}, w.steps(record.ID)); diff != "" {
		t.Error(diff)
	}
	for _, mark := range []string{"a-7", "b", "a-7b"} {
		if w.starts(mark) != 1 {
			t.Errorf("%s was started %d times", mark, w.starts(mark))
		}
	}
	var nodes []string
	for event, err := range w.service.Feed.Events(trusted.Context(t), record.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := event.Decode(); event.Type == api.EventNode {
			node := data.(api.NodeEvent)
			nodes = append(nodes, node.Address)
			if strings.Contains(strings.ReplaceAll(string(event.Data), node.Run, ""), "a-7b") { // an id may have it by chance
				t.Errorf("an event has a value: %s", event.Data)
			}
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, nodes); diff != "" {
		t.Error(diff)
	}
}

func TestAFlowGoesOnInTheNextProcess(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, chainGraph)
	id := w.submitTo("f", chainInput{1, "g"})
	within(t, func() bool { return w.starts("b") == 1 }, func() string { return fmt.Sprint(w.steps(id)) })
	w.stop()
	w.start()
	if got := w.until(id, running); got.Flow == nil || got.Flow.Steps != 1 {
		t.Errorf("record %s", show(got))
	}
	w.stop()
	w.open("g") // while nobody is there
	w.start()
	record := w.await(id)
	if record.Outcome != api.Success || string(record.Output) != `{"all":"a-1b","n":1}` {
		t.Fatalf("record %s", show(record))
	}
	for _, mark := range []string{"a-1", "b", "a-1b"} {
		if w.starts(mark) != 1 {
			t.Errorf("%s was started %d times", mark, w.starts(mark))
		}
	}
	if diff := cmp.Diff([]string{"a~1 done", "b~1 done", "c~1 done"}, w.steps(id)); diff != "" {
		t.Error(diff)
	}
}

func TestAFlowIsCancelledWithItsCalls(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"while it goes on": false, "in the next process": true} {
		t.Run(name, func(t *testing.T) {
			w := newFlowFixture(t, chainGraph)
			id := w.submitTo("f", chainInput{1, "never"})
			within(t, func() bool { return w.starts("b") == 1 }, func() string { return fmt.Sprint(w.steps(id)) })
			if again {
				w.stop()
				w.dieCancelling(id)
				w.start()
			} else if _, err := w.service.Cancel(trusted.Context(t), id, "because"); err != nil {
				t.Fatal(err)
			}
			record := w.await(id)
			if record.Outcome != api.WasCancelled || !strings.Contains(record.Error.Message, "because") {
				t.Errorf("record %s", show(record))
			}
			if diff := cmp.Diff([]string{"a~1 done"}, w.steps(id)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFlowRunsOutOfTime(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) {
		flowOf(t, s, "f", "limits: {timeout: 500ms}\n", anyContract, chainGraph)
	})
	record := w.await(w.submitTo("f", chainInput{1, "never"}))
	if record.Outcome != api.TimedOut || record.State != api.Timeout || !strings.Contains(record.Error.Message, "500ms") {
		t.Errorf("record %s", show(record))
	}
}

func TestANodeThatFails(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		graph, node, kind, says string
		steps                   []string
	}{
		"ends the flow with its error": {
			`{nodes: {a: {run: worker, with: {mark: a, exit: 3}}}}`, "a", "capsule_error", "the step a failed: ", []string{"a~1 failed"},
		},
		"may be tried again": {
			`{nodes: {a: {run: worker, retry: 2, with: {mark: a, exit: 3}}}}`, "a", "capsule_error", "", []string{"a~1 failed", "a~2 failed"},
		},
		"by an input that breaks the contract": {
			`{nodes: {a: {run: worker, retry: 2, with: {mark: "${{ input.n }}"}}}}`, "a", "invalid_input", "contract", []string{"a~1 failed"},
		},
		"by a text for a file": {
			`{nodes: {a: {run: worker, with: {doc: "${{ input.gate }}"}}}}`, "a", "invalid_input", "", []string{"a~1 failed"},
		},
		"by a unit that isn't there": {
			`{nodes: {a: {run: nobody, retry: 2}}}`, "a", "not_found", "nobody", []string{"a~1 failed"},
		},
		"by calling itself": {
			`{nodes: {a: {run: "${{ input.gate == '' ? 'f' : 'f' }}", units: [f], retry: 2}}}`, "a", "cycle", "", []string{"a~1 failed"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFlowFixture(t, c.graph)
			record := w.await(w.submitTo("f", chainInput{Gate: "x.txt"}))
			if record.Outcome != api.StepFailed || record.State != api.Failed || record.Error == nil || record.Error.Step != c.node || record.Error.Kind != c.kind || !strings.Contains(record.Error.Message, c.says) {
				t.Fatalf("record %s", show(record))
			}
			keepsSchema(t, record)
			if diff := cmp.Diff(c.steps, w.steps(record.ID)); diff != "" {
				t.Error(diff)
			}
			if record.Flow.Failed != len(c.steps) {
				t.Errorf("counts %+v", record.Flow)
			}
		})
	}
}

func TestWhatTheOperatorForbidsAFlowMayNotCall(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, chainGraph, func(s *settings) {
		given := s.Units["f"]
		given.MayNotCall = []string{"worker"}
		s.Units["f"] = given
	})
	record := w.await(w.submitTo("f", chainInput{}))
	if record.Outcome != api.StepFailed || record.Error.Kind != "grant" || !strings.Contains(record.Error.Hint, "flow.yaml") || w.starts("a-0") > 0 {
		t.Errorf("record %s", show(record))
	}
}

const filesContract = `{
  "input": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}}, "required": ["doc"]},
  "output": {"type": "object", "properties": {
    "docs": {"type": "array", "items": {"type": "string", "format": "file_path"}}, "first": {"type": "string", "format": "file_path"}
  }}
}`

func TestFilesGoThroughAFlow(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) {
		flowOf(t, s, "f", "", filesContract, `
nodes:
  a: {run: worker, with: {mark: a, file: out.txt, doc: "${{ input.doc }}"}, set: {a: "${{ out.file }}"}, next: b}
  b: {map: "${{ [1, 2] }}", run: worker, with: {mark: "b${{ item }}", file: out.txt, doc: "${{ state.a }}"}, collect: "${{ out.file }}", set: {b: "${{ out }}"}, next: c}
  c: {map: "${{ state.b }}", run: worker, with: {mark: "c${{ index }}", file: "${{ 'c' + string(index) + '.txt' }}"}, collect: "${{ out.file }}", set: {c: "${{ out }}"}}
output: {docs: "${{ state.c }}", first: "${{ state.a }}"}
`)
	})
	path := filepath.Join(t.TempDir(), "report.txt")
	write(t, path, "all of it")
	id := w.submitFile("f", "doc", path)
	record := w.await(id)
	if record.Outcome != api.Success {
		t.Fatalf("record %s", show(record))
	}
	keepsSchema(t, record)
	want := map[string]string{"c0.txt": "content of c0", "c1.txt": "content of c1", "out.txt": "all of it"}
	got := map[string]string{}
	for _, file := range record.Files {
		raw, err := os.ReadFile(w.service.Runs.FilePath(id, file.Name))
		if err != nil {
			t.Fatal(err)
		}
		got[file.Name] = string(raw)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := w.service.Retention.Prune(trusted.Context(t), api.PruneOptions{}); err != nil {
		t.Fatal(err)
	}
}

// submitFile has a run accepted with a file for a field.
func (w *fixture) submitFile(unit, field, path string) string {
	w.t.Helper()
	files, err := w.service.NewSpool()
	if err != nil {
		w.t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := files.Add(field, filepath.Base(path), f, 1<<20); err != nil {
		w.t.Fatal(err)
	}
	record, _, err := w.service.Submit(trusted.Context(w.t), spool.Submission{Unit: unit, Files: files})
	if err != nil {
		w.t.Fatal(err)
	}
	return record.ID
}

func TestAnOutputHasToKeepTheContract(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ output, says string }{
		"a text for a file": {`{x: "${{ input.gate }}"}`, "it is a text"},
		"a wrong type":      {`{x: "${{ input.n }}"}`, "string"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(s *settings) {
				flowOf(t, s, "f", "", `{"input": {"type": "object"}, "output": {"type": "object", "properties": {"x": {"type": "string", "format": "file_path"}}, "required": ["x"]}}`,
					"{nodes: {a: {set: {n: 1}}}, output: "+c.output+"}")
			})
			record := w.await(w.submitTo("f", chainInput{Gate: "a.txt"}))
			if record.Outcome != api.ContractViolation || !strings.Contains(show(record), c.says) {
				t.Errorf("record %s", show(record))
			}
		})
	}
}

func TestFlowsTakeNoSlot(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) {
		s.Concurrency = 1
		flowOf(t, s, "f", "concurrency: 1\n", anyContract, `{nodes: {a: {run: g, with: {n: "${{ input.n }}"}}}}`)
		flowOf(t, s, "g", "concurrency: 1\n", anyContract, `{nodes: {a: {map: "${{ [1, 2, 3] }}", run: h, with: {n: "${{ input.n }}"}}}}`)
		flowOf(t, s, "h", "", anyContract, `{nodes: {a: {run: worker, with: {mark: "w${{ input.n }}"}, next: b}, b: {run: worker, with: {mark: "w${{ input.n }}"}}}}`)
	})
	var ids []string
	for n := range 3 {
		ids = append(ids, w.submitTo("f", chainInput{N: n}))
	}
	for n, id := range ids {
		if record := w.await(id); record.Outcome != api.Success || w.starts(fmt.Sprintf("w%d", n)) != 6 {
			t.Fatalf("record %s", show(record))
		}
	}
}

func TestAFlowsConcurrencyHoldsForItsWholeLife(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) {
		flowOf(t, s, "f", "concurrency: 1\n", anyContract, chainGraph)
	})
	first, second := w.submitTo("f", chainInput{1, "g"}), w.submitTo("f", chainInput{2, "g"})
	within(t, func() bool { return w.starts("b") == 1 }, func() string { return fmt.Sprint(w.steps(first)) })
	w.stop()
	w.start()
	w.until(first, running)
	if got, err := w.service.Runs.Get(trusted.Context(t), second); err != nil || got.State != api.Idle {
		t.Errorf("record %s, %v", show(got), err)
	}
	w.open("g")
	for _, id := range []string{first, second} {
		if record := w.await(id); record.Outcome != api.Success {
			t.Errorf("record %s", show(record))
		}
	}
}

func TestAFullQueueIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `{nodes: {a: {map: "${{ 1..20 }}", parallel: 20, run: worker, with: {mark: m}}}}`, func(s *settings) {
		s.Concurrency, s.Queue = 1, 1
	})
	record := w.await(w.submitTo("f", chainInput{}))
	if record.Outcome != api.Success || w.starts("m") != 20 {
		t.Errorf("%d started, record %s", w.starts("m"), show(record))
	}
}

func TestAFlowHasItsOwnLimitOfCalls(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `{nodes: {a: {map: "${{ 1..5 }}", parallel: 1, run: worker, with: {mark: m}}}}`, func(s *settings) {
		s.Handoffs.Calls, s.Handoffs.FlowCalls = 1, 4
	})
	record := w.await(w.submitTo("f", chainInput{}))
	if record.Outcome != api.StepFailed || w.starts("m") != 4 || !strings.Contains(show(record), "calls") {
		t.Errorf("%d started, record %s", w.starts("m"), show(record))
	}
}

func TestAFlowHasNoRetries(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `{nodes: {a: {run: worker, with: {mark: a, exit: 3}}}}`)
	if u, err := w.service.Units.Show(trusted.Context(t), "f"); err != nil || u.Policy.Retries != 0 || u.Kind != "flow" || !slices.Equal(u.Policy.MayCall, []string{"worker"}) {
		t.Errorf("%+v, %v", u.Policy, err)
	}
}

func TestAFlowStaysWithTheVersionsThatItBeganWith(t *testing.T) {
	t.Parallel()
	graph := `
start: a
nodes:
  a: {run: worker, with: {mark: a}, next: b}
  b: {run: worker, with: {mark: b, until: "${{ input.gate }}"}, next: c}
  c: {run: worker, with: {mark: old}}
`
	w := newFlowFixture(t, graph)
	first := w.submitTo("f", chainInput{Gate: "g"})
	within(t, func() bool { return w.starts("b") == 1 }, func() string { return fmt.Sprint(w.steps(first)) })
	before := w.until(first, func(r api.Record) bool { return r.Versions["worker"] != "" }).Versions["worker"]
	edit := func(name, file, old, changed string) {
		path := filepath.Join(w.opts.Sources[0], name, file)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.ReplaceAll(string(raw), old, changed))
	}
	edit("f", "flow.yaml", "mark: old", "mark: new")
	edit("worker", "agent.yaml", "timeout: 2m", "timeout: 3m")
	w.stop()
	w.start()
	within(t, func() bool {
		u, err := w.service.Units.Show(trusted.Context(t), "worker")
		return err == nil && u.Version != before
	}, func() string { return "the edit isn't seen" })
	w.open("g")
	second := w.submitTo("f", chainInput{Gate: "g"})
	for id, mark := range map[string]string{first: "old", second: "new"} {
		record := w.await(id)
		if record.Outcome != api.Success || w.starts(mark) != 1 || (record.Versions["worker"] == before) != (id == first) {
			t.Errorf("%s: %d times, record %s", mark, w.starts(mark), show(record))
		}
		keepsSchema(t, record)
		for _, step := range w.stepsIn(id) {
			if call, err := w.service.Runs.Get(trusted.Context(t), step.Run); err != nil || call.Version != record.Versions["worker"] {
				t.Errorf("%s ran version %s, %v", step.Address, call.Version, err)
			}
		}
	}
}

func (w *fixture) stepsIn(id string) []api.Step {
	w.t.Helper()
	page, err := w.service.Flows.Steps(trusted.Context(w.t), id, records.StepFilter{})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Steps
}

func TestALocalsFlowAsksItsRequest(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, askingGraph)
	u, err := w.service.Units.Get(trusted.Context(t), "f")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLocal(Options{Home: t.TempDir(), Kinds: run.Kinds{"flow": kindflow.New(nil)}})
	if err != nil {
		t.Fatal(err)
	}
	req := Request{Request: run.Request{Unit: u}}
	ended, err := l.Run(trusted.Context(t), req)
	if err != nil || ended.Record.Outcome != api.StepFailed || ended.Record.Error.Kind != "unanswered" || !strings.Contains(ended.Record.Error.Hint, "--answer a=") {
		t.Errorf("%v, record %s", err, show(ended.Record))
	}
	req.Answer = func(context.Context, run.Question) (run.Answer, error) { return run.Answer{Action: "reject"}, nil }
	ended, err = l.Run(trusted.Context(t), req)
	if err != nil || ended.Record.Outcome != api.Success || ended.Record.Flow.Action != "reject" {
		t.Errorf("%v, record %s", err, show(ended.Record))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestAFlowThatCouldWaitForItselfIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent   string
		bound   int
		refused bool
	}{
		"recursive and bounded": {"recursion: 1\n", 1, true},
		"bounded":               {"", 1, false},
		"recursive":             {"recursion: 1\n", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, func(s *settings) {
				flowOf(t, s, "f", c.agent, anyContract, `{nodes: {a: {run: worker, with: {mark: a}}}}`)
				s.Units = map[string]units.Settings{"f": {Concurrency: c.bound}}
			})
			_, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "f", Input: encoded(chainInput{})})
			if fault.Is(err, fault.Unsupported) != c.refused || !c.refused && err != nil {
				t.Errorf("submitted: %v", err)
			}
		})
	}
}

// startedRuns counts how often a run is saved until it is running.
type startedRuns struct {
	runStore
	saves atomic.Int64
}

func (s *startedRuns) Save(ctx context.Context, r store.Run, events ...store.Event) error {
	switch api.State(r.State) {
	case api.Idle, api.Starting, api.Running:
		s.saves.Add(1)
	}
	return s.runStore.Save(ctx, r, events...)
}

func TestTheVersionsOfAFlowsUnitsAreStoredWithItsStart(t *testing.T) {
	t.Parallel()
	const graph = `{start: a, nodes: {a: {run: worker, when: false, next: b}, b: {run: g, when: false, next: c}, c: {run: h, when: false}}}`
	w := newFixture(t, func(s *settings) {
		flowOf(t, s, "f", "", anyContract, graph)
		for _, name := range []string{"g", "h"} {
			flowOf(t, s, name, "", anyContract, `{nodes: {a: {set: {x: 1}}}}`)
		}
	})
	starts := &startedRuns{runStore: w.service.journal.Runs}
	w.service.journal.Runs = starts
	record := w.await(w.submitTo("f", chainInput{}))
	if got := starts.saves.Load(); got != 2 { // starting, and running
		t.Errorf("saved %d times", got)
	}
	if record.Outcome != api.Success || len(record.Versions) != 3 {
		t.Errorf("record %s", show(record))
	}
}
