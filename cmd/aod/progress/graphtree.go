package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// graphNode is a node of a flow in the tree of a live run: all its visits and items are one
// line. That of the flow itself has no name.
type graphNode struct {
	name   string
	unit   string // that it called last
	below  []*graphNode
	last   api.StepState // of its visits; "": it goes on
	visits tally
	items  tally
	of     int           // items of its maps
	asked  *api.Question // that is open; nil: none
	call   *callNode     // the last one
	since  time.Time
	took   time.Duration // 0 while it goes on
}

// underWay is the state of a step whose call goes on. It isn't a step's in a record.
const underWay api.StepState = "running"

// tally counts steps by their states.
type tally struct {
	states map[string]api.StepState // by address
	counts map[api.StepState]int
}

// set notes the state of a step. Its last state counts: a try that is followed by another one
// has failed in between.
func (t *tally) set(address string, state api.StepState) {
	if t.states == nil {
		t.states, t.counts = map[string]api.StepState{}, map[api.StepState]int{}
	}
	t.counts[t.states[address]]--
	t.counts[state]++
	t.states[address] = state
}

// text is what the items of a map have come to.
func (t *tally) text(of int) string {
	var parts []string
	for _, state := range []api.StepState{api.DoneStep, api.FailedStep, underWay} {
		if n := t.counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.TrimPrefix(strings.Join(parts, ", ")+fmt.Sprintf(" of %d", max(of, len(t.states))), " ")
}

// at returns the node that an address names, a new one where it is met for the first time.
func (g *graphNode) at(address string) *graphNode {
	for name := range strings.SplitSeq(flow.NodePath(address), "/") {
		g = g.child(name)
	}
	return g
}

func (g *graphNode) child(name string) *graphNode {
	for _, n := range g.below {
		if n.name == name {
			return n
		}
	}
	n := &graphNode{name: name, since: time.Now()}
	g.below = append(g.below, n)
	return n
}

// note records what a step is now.
func (g *graphNode) note(e api.NodeEvent) {
	n := g.at(e.Address)
	switch {
	case e.Items > 0:
		n.of += e.Items
	case isItem(e.Address):
		n.items.set(e.Address, e.State)
	case e.State == api.OpenStep:
		n.visits.set(e.Address, e.State)
		n.last, n.took = "", 0
	default:
		n.visits.set(e.Address, e.State)
		n.last, n.took, n.asked = e.State, max(time.Since(n.since), time.Millisecond), nil
	}
}

// calls records the call that a step has begun.
func (g *graphNode) calls(address string, call *callNode) {
	n := g.at(address)
	n.unit, n.call = call.unit, call
	if isItem(address) {
		n.items.set(address, underWay)
		return
	}
	n.visits.set(address, underWay)
	n.last, n.took = "", 0
}

// asks records that a question is open, or that none is.
func (g *graphNode) asks(address string, q *api.Question) { g.at(address).asked = q }

func isItem(address string) bool { return strings.HasSuffix(address, "]") }

// twigs implements twig. The calls of a map's items are in its counts.
func (g *graphNode) twigs() []twig {
	var below []twig
	for _, n := range g.below {
		below = append(below, n)
	}
	if g.call == nil || len(g.items.states) > 0 {
		return below
	}
	return append(below, g.call.twigs()...)
}

// line implements twig.
func (g *graphNode) line(o *ui.Output, now time.Time) string {
	took := g.took
	if took == 0 {
		took = now.Sub(g.since)
	}
	line := g.mark(o) + " " + ui.Printable(g.name)
	if g.unit != "" {
		line += " " + o.Style(ui.Dim, ui.Printable(g.unit))
	}
	if visits := len(g.visits.states); visits > 1 {
		line += fmt.Sprintf(" ×%d", visits)
	}
	line += " " + o.Style(ui.Dim, took.Round(10*time.Millisecond).String())
	if g.of > 0 || len(g.items.states) > 0 {
		line += " " + g.items.text(g.of)
	}
	if g.asked != nil {
		line += " " + AnswerCommand(*g.asked)
	}
	return line
}

func (g *graphNode) mark(o *ui.Output) string {
	switch {
	case g.asked != nil:
		return o.Style(ui.Yellow, "?")
	case g.last == api.DoneStep:
		return o.Style(ui.Green, "✓")
	case g.last == api.FailedStep:
		return o.Style(ui.Red, "✗")
	case g.last == api.SkippedStep:
		return o.Style(ui.Dim, "·")
	}
	return o.Style(ui.Yellow, "▸")
}

// AnswerCommand is the command that answers a question, or who alone may.
func AnswerCommand(q api.Question) string {
	if q.IsForOthers() {
		return "answered by " + ui.Printable(strings.Join(q.Approvers, ", ")) + " alone"
	}
	return "aod answer " + ui.Printable(q.ID) + " " + ui.Printable(strings.Join(q.Answers, "|"))
}
