package graph

import (
	"errors"
	"html/template"
)

// The bounds of what is drawn, with all that is inside of nodes.
const (
	MaxNodes  = 300
	MaxEdges  = 1000
	maxDepth  = 9      // of graphs inside of nodes
	maxPoints = 10_000 // of one graph: nodes, and places where lines go through a layer
)

// ErrTooLarge is the error for a graph over the bounds.
var ErrTooLarge = errors.New("the graph is too large to draw; show its table alone")

// Outside is the id of what is around a graph: edges from it lead to where the graph begins, and
// edges to it end the graph. It is drawn as "start" and "end", and inside of a node as the points
// where the lines of that node come and go.
const Outside = ""

// Graph is what is drawn. The order of nodes and edges decides where there is a choice: the first
// node should be the one where the graph begins. Edges of nodes that don't exist are left out.
type Graph struct {
	Nodes []Node
	Edges []Edge
}

// Node is one node of a graph.
type Node struct {
	ID       string // one of its own in the whole picture; it becomes data-key
	Name     string
	State    State
	Line     string    // below the name: what it does, or how it stands
	Aside    string    // a short text at the right of the name, such as how long it took
	Stack    bool      // it stands for many of its kind
	Progress *Progress // nil: there is none; with one, the node is a stack
	Inside   *Graph    // unfolded: the node is a frame around it
	Href     string    // where the node leads: a reference without scheme and host; "": nowhere
	Hint     string    // what following Href does, such as "unfold"; for those who hear the page
}

// Progress is how far the items of a node are.
type Progress struct{ Succeeded, Failed, Total int }

// State is how a node stands: the class that it gets.
type State string

// The states of a node.
const (
	Plain   State = "" // it has none: a definition that doesn't run
	None    State = "none"
	OK      State = "ok"
	Running State = "run"
	Ask     State = "ask"
	Bad     State = "bad"
	Late    State = "late"
	Off     State = "off"
)

// looks are the mark and the word of each state.
var looks = map[State]struct{ mark, word string }{
	None: {"queue", "not begun"}, OK: {"ok", "done"}, Running: {"run", "running"}, Bad: {"bad", "failed"},
	Ask: {"ask", "waits for a person"}, Late: {"late", "timed out"}, Off: {"off", "skipped"},
}

// Edge leads from a node to a node, which may be the same one.
type Edge struct {
	From, To string // ids of nodes of the same graph, or Outside
	Label    string // such as the action, and how often it was taken
	Way      Way
}

// Way is whether an edge was taken: the class that it gets.
type Way string

// The ways.
const (
	Unknown Way = "" // of a definition that doesn't run
	Taken   Way = "done"
	Untaken Way = "no"
)

// Options are how a graph is drawn.
type Options struct {
	Label string // says what the picture is
	Right bool   // it goes from left to right, not from top to bottom
}

// Draw lays out a graph and writes it as SVG. Where a node stands depends on names and labels,
// and hardly on states, so that little moves while a graph runs. A graph over the bounds is
// ErrTooLarge. There may be one picture in a page: its markers have ids.
func Draw(g *Graph, o Options) (template.HTML, error) {
	if nodes, edges := g.size(0); nodes > MaxNodes || edges > MaxEdges {
		return "", ErrTooLarge
	}
	l, err := newLayout(g, o.Right, false)
	if err != nil {
		return "", err
	}
	return l.svg(o.Label), nil
}

// size counts a graph with all that is inside of its nodes. What is too deep is too much.
func (g *Graph) size(depth int) (nodes, edges int) {
	if depth > maxDepth {
		return MaxNodes + 1, 0
	}
	nodes, edges = len(g.Nodes), len(g.Edges)
	for i := 0; i < len(g.Nodes) && nodes <= MaxNodes; i++ {
		if inside := g.Nodes[i].Inside; inside != nil {
			n, e := inside.size(depth + 1)
			nodes, edges = nodes+n, edges+e
		}
	}
	return nodes, edges
}
