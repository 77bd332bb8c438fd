package progress

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// flowEvents are those of a flow "r" with a map in its second visit, a sub-flow and a question.
func flowEvents() []run.Event {
	node := func(address string, state api.StepState) run.Event {
		return run.Event{Run: "r", Data: api.NodeEvent{Address: address, Try: 1, State: state}}
	}
	call := func(id, unit, step string, state api.State) run.Event {
		return run.Event{Run: id, Unit: unit, Parent: "r", Step: step, State: &api.Transition{State: state, At: time.Now()}}
	}
	events := []run.Event{
		{Run: "r", State: &api.Transition{State: api.Running}},
		call("a", "splitter", "split", api.Starting), node("split", api.DoneStep), node("split#2", api.DoneStep),
		{Run: "r", Data: api.NodeEvent{Address: "read", State: api.OpenStep, Items: 1000}},
	}
	for i := range 20 {
		events = append(events, call(fmt.Sprint("read", i), "reader", fmt.Sprintf("read[%d]", i), api.Starting))
	}
	for i := range 12 {
		events = append(events, node(fmt.Sprintf("read[%d]", i), api.DoneStep))
	}
	return append(events,
		node("read[12]", api.FailedStep), call("again", "reader", "read[12]", api.Starting), // it is tried again
		node("read[13]", api.FailedStep),
		node("research/plan", api.SkippedStep), call("deep", "capsule", "research/look", api.Running),
		run.Event{Run: "below", Unit: "callee", Parent: "deep", State: &api.Transition{State: api.Running}},
	)
}

func TestTheTreeOfAFlowHasALineForEachNode(t *testing.T) {
	out, _ := screen(true)
	tree := newCallTree("root")
	for _, e := range flowEvents() {
		tree.note(e)
	}
	tree.root.graph.asks("approve", &api.Question{ID: "q1", Answers: []string{"approve", "revise"}})
	took := regexp.MustCompile(` [0-9.]+m?s\b`)
	var lines []string
	for _, line := range tree.root.lines(out.Plain(), time.Now()) {
		lines = append(lines, took.ReplaceAllString(line, ""))
	}
	want := []string{
		"▸ root",
		"├─ ✓ split splitter ×2",
		"├─ ▸ read reader 12 done, 1 failed, 7 running of 1000",
		"├─ ▸ research",
		"│  ├─ · plan",
		"│  └─ ▸ look capsule",
		"│     └─ ▸ callee",
		"└─ ? approve aod answer q1 approve|revise",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestAQuestionIsShownWithTheCommandThatAnswersIt(t *testing.T) {
	q := api.Question{ID: "0198c0de", Address: "approve", Text: "Send it?\x1b[2J", Answers: []string{"approve", "reject"}}
	for name, terminal := range map[string]bool{"on a terminal": true, "in a pipe": false} {
		t.Run(name, func(t *testing.T) {
			out, shown := screen(terminal)
			v := &View{Out: out, Unit: "root", steps: map[string]step{}, calls: newCallTree("root")}
			v.WaitFor("root running")
			v.Event(run.Event{Run: "r", State: &api.Transition{State: api.Running}})
			v.Asks("r", q)
			got := shown.String()
			if !strings.Contains(got, "approve: Send it?") || !strings.Contains(got, "aod answer 0198c0de approve|reject") || strings.Contains(got, "\x1b[2J") {
				t.Errorf("shown %q", got)
			}
			v.Answered("r", "approve")
			shown.Reset()
			v.Print("later")
			if strings.Contains(shown.String(), "aod answer") {
				t.Errorf("still shown: %q", shown.String())
			}
		})
	}
}

func TestWhoeverIsAskedHasTheTerminalAlone(t *testing.T) {
	out, shown := screen(true)
	v := &View{Out: out, Unit: "root", steps: map[string]step{}, calls: newCallTree("root")}
	v.WaitFor("root running")
	release := v.Hold()
	v.draw()
	if shown.Len() > 0 {
		t.Errorf("drawn over the prompt: %q", shown.String())
	}
	release()
	v.draw()
	if shown.Len() == 0 {
		t.Error("nothing is drawn any more")
	}
}
