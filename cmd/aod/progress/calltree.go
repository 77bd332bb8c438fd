package progress

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// callNode is a run in the tree of calls.
type callNode struct {
	unit     string
	step     string // of the flow that called it, by its address
	state    api.State
	outcome  string // what went wrong; "" if nothing did
	since    time.Time
	took     time.Duration // 0 until it ends
	files    int
	models   api.ModelUsage // of the run itself
	children []*callNode
	graph    graphNode // of a flow that is followed: its nodes
}

// twig is what has a line in the tree, and others below it.
type twig interface {
	line(o *ui.Output, now time.Time) string
	twigs() []twig
}

// twigs implements twig.
func (n *callNode) twigs() []twig {
	below := n.graph.twigs()
	for _, child := range n.children {
		below = append(below, child)
	}
	return below
}

// nodesOf turns the calls of a record into nodes.
func nodesOf(calls []api.Call) []*callNode {
	nodes := make([]*callNode, 0, len(calls))
	for _, c := range calls {
		node := &callNode{
			unit: c.Unit, step: c.Step, state: c.State, since: c.CreatedAt, files: c.Files, outcome: c.ErrorKind,
			took: time.Duration(c.TotalMS * float64(time.Millisecond)), children: nodesOf(c.Calls),
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// nodeOf turns a record and its calls into a node.
func nodeOf(r api.Record) *callNode {
	node := &callNode{
		unit: r.Unit, state: r.State, since: r.CreatedAt, files: len(r.Files),
		took: time.Duration(r.Timings.Total * float64(time.Millisecond)), children: nodesOf(r.Calls),
	}
	if r.Error != nil {
		node.outcome = r.Error.Kind
	}
	if r.Models != nil {
		node.models = *r.Models
	}
	return node
}

// ShowTree draws a run with all its calls. The record of an unfinished run doesn't have its
// calls yet: the server is asked for them.
func ShowTree(ctx context.Context, env *cli.Env, server *client.Client, record api.Record) error {
	node := nodeOf(record)
	if record.Outcome == "" {
		var err error
		if node.children, err = callsOf(ctx, server, record.ID, 0); err != nil {
			return err
		}
	}
	for _, line := range node.lines(env.Out, time.Now()) {
		env.Out.Line("%s", line)
	}
	return nil
}

// callsOf requests the calls of a run, and their calls. A tree is never deeper than
// maxDepth.
func callsOf(ctx context.Context, server *client.Client, id string, depth int) ([]*callNode, error) {
	const maxDepth = 64
	if depth == maxDepth {
		return nil, nil
	}
	var nodes []*callNode
	for run, err := range server.Runs.List(ctx, api.Filter{Parent: id}) {
		if err != nil {
			return nil, err
		}
		node := &callNode{
			unit: run.Unit, state: run.State, since: run.CreatedAt,
			took: time.Duration(run.Timings.Total * float64(time.Millisecond)),
		}
		if run.Error != nil {
			node.outcome = run.Error.Kind
		}
		if node.children, err = callsOf(ctx, server, run.ID, depth+1); err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	slices.Reverse(nodes) // the server lists newest first
	return nodes, nil
}

// lines draws the node and the nodes below it.
func (n *callNode) lines(o *ui.Output, now time.Time) []string {
	return append([]string{n.line(o, now)}, branches(o, n.twigs(), "", now)...)
}

func branches(o *ui.Output, nodes []twig, indent string, now time.Time) []string {
	var lines []string
	for i, n := range nodes {
		branch, below := "├─ ", "│  "
		if i == len(nodes)-1 {
			branch, below = "└─ ", "   "
		}
		lines = append(lines, o.Style(ui.Dim, indent+branch)+n.line(o, now))
		lines = append(lines, branches(o, n.twigs(), indent+below, now)...)
	}
	return lines
}

// line draws the node itself: its mark, its name, its duration, its files.
func (n *callNode) line(o *ui.Output, now time.Time) string {
	took := n.took
	if took == 0 {
		took = now.Sub(n.since)
	}
	line := fmt.Sprintf("%s %s %s", n.mark(o), n.name(o), o.Style(ui.Dim, took.Round(10*time.Millisecond).String()))
	if n.files > 0 {
		line += o.Style(ui.Dim, " "+ui.Plural(n.files, "file"))
	}
	if n.models.Calls > 0 {
		line += o.Style(ui.Dim, " "+ui.ModelUsage(n.models))
	}
	if n.outcome != "" {
		line += " " + o.Style(ui.Red, n.outcome)
	}
	return line
}

// name is the unit, after the step that called it.
func (n *callNode) name(o *ui.Output) string {
	if n.step == "" {
		return ui.Printable(n.unit)
	}
	return ui.Printable(n.step) + " " + o.Style(ui.Dim, ui.Printable(n.unit))
}

func (n *callNode) mark(o *ui.Output) string {
	switch n.state {
	case api.Completed:
		return o.Style(ui.Green, "✓")
	case api.Failed, api.Timeout, api.Cancelled:
		return o.Style(ui.Red, "✗")
	case api.Idle:
		return o.Style(ui.Dim, "·")
	}
	return o.Style(ui.Yellow, "▸")
}

// callTree follows the tree of calls while it grows.
type callTree struct {
	root  *callNode
	nodes map[string]*callNode // by run
}

func newCallTree(unit string) *callTree {
	root := &callNode{unit: unit, state: api.Idle, since: time.Now()}
	return &callTree{root: root, nodes: map[string]*callNode{}}
}

// note records an event of any run in the tree and returns its node; called is true for a
// new run that another one called.
func (t *callTree) note(e run.Event) (node *callNode, called bool) {
	node = t.nodes[e.Run]
	if node == nil {
		node, called = t.add(e)
	}
	switch data := e.Data.(type) {
	case api.ModelCall:
		node.models.Add(data)
	case api.NodeEvent:
		node.graph.note(data)
	}
	if e.State == nil || e.State.State == api.Cleanup || e.State.State == api.Idle {
		return node, called
	}
	node.state = e.State.State
	if ended(node.state) {
		node.took, node.files = max(e.State.At.Sub(node.since), time.Millisecond), e.Files
		if node.state != api.Completed {
			node.outcome = e.Outcome
		}
	}
	return node, called
}

func (t *callTree) add(e run.Event) (node *callNode, called bool) {
	if e.Parent == "" {
		t.nodes[e.Run] = t.root
		return t.root, false
	}
	node = &callNode{unit: e.Unit, step: e.Step, state: api.Idle, since: time.Now()}
	t.nodes[e.Run] = node
	switch parent := t.nodes[e.Parent]; {
	case parent == nil:
	case e.Step != "":
		parent.graph.calls(e.Step, node)
	default:
		parent.children = append(parent.children, node)
	}
	return node, true
}

func ended(s api.State) bool {
	switch s {
	case api.Completed, api.Failed, api.Timeout, api.Cancelled:
		return true
	}
	return false
}
