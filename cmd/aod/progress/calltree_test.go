package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func TestCallTreeFollowsItsRuns(t *testing.T) {
	out, _ := screen(true)
	tree := newCallTree("root")
	start := time.Now()
	entered := func(id, unit, parent string, state api.State, after time.Duration) run.Event {
		at := api.Transition{State: state, At: start.Add(after)}
		return run.Event{Run: id, Unit: unit, Parent: parent, State: &at}
	}
	tree.note(entered("r", "root", "", api.Running, 0))
	if _, called := tree.note(entered("a", "first", "r", api.Starting, 0)); !called {
		t.Error("a new call isn't told as one")
	}
	tree.note(entered("b", "second", "r", api.Running, 0))
	tree.note(entered("c", "below", "a", api.Running, 0))
	tree.note(entered("x", "stranger\x1b[2J", "nobody", api.Running, 0))
	end := entered("c", "below", "a", api.Failed, 2*time.Second)
	end.Outcome = "timeout"
	tree.note(end)
	end = entered("a", "first", "r", api.Completed, 3*time.Second)
	end.Files = 1
	tree.note(end)
	if _, called := tree.note(entered("a", "first", "r", api.Cleanup, 4*time.Second)); called {
		t.Error("a known call is told as a new one")
	}
	tree.nodes["a"].took, tree.nodes["c"].took = 3*time.Second, 2*time.Second
	want := []string{"▸ root 5s", "├─ ✓ first 3s 1 file", "│  └─ ✗ below 2s timeout", "└─ ▸ second 5s"}
	tree.root.since, tree.nodes["b"].since = start, start
	if diff := cmp.Diff(want, tree.root.lines(out.Plain(), start.Add(5*time.Second))); diff != "" {
		t.Error(diff)
	}
}

func TestTheTreeOfARecordIsDrawn(t *testing.T) {
	out, _ := screen(true)
	record := api.Record{
		Unit: "root", State: api.Completed, Timings: api.Timings{Total: 1500}, Files: make([]api.File, 2),
		Calls: []api.Call{{Unit: "a\x1b[31m", State: api.Cancelled, ErrorKind: "cancelled", TotalMS: 100}},
	}
	lines := nodeOf(record).lines(out.Plain(), time.Now())
	if len(lines) != 2 || lines[0] != "✓ root 1.5s 2 files" || strings.Contains(lines[1], "\x1b") {
		t.Errorf("drawn %q", lines)
	}
}

func TestTheLiveTreeIsTakenAwayWhole(t *testing.T) {
	out, shown := screen(true)
	v := &View{Out: out, Unit: "root", steps: map[string]step{}, calls: newCallTree("root")}
	v.WaitFor("root running")
	for _, e := range []run.Event{{Run: "r"}, {Run: "a", Unit: "one", Parent: "r"}, {Run: "b", Unit: "two", Parent: "r"}} {
		v.Event(e)
	}
	v.draw()
	if v.drawn != 3 {
		t.Errorf("%d lines were drawn: %q", v.drawn, shown)
	}
	shown.Reset()
	v.Print("stays")
	if got := shown.String(); !strings.HasPrefix(got, strings.Repeat("\r\x1b[K\x1b[A", 2)+"\r\x1b[Kstays\n") {
		t.Errorf("shown %q", got)
	}
}
