package flow

import (
	"time"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// The bounds of a flow.
const (
	FileName    = "flow.yaml"
	MaxBytes    = 256 << 10 // of flow.yaml
	MaxNodes    = 500       // of all scopes together
	MaxDepth    = 8         // of scopes
	MaxAddress  = 512       // bytes
	MaxState    = 4 << 20   // bytes of the state, as JSON
	MaxSteps    = 10_000    // that max_steps can allow
	MaxParallel = 1000      // that parallel can allow
)

// What holds where a flow says nothing.
const (
	DefaultSteps    = 100  // visits of nodes in a scope
	DefaultParallel = 8    // items of a map at once
	DefaultItems    = 1000 // of a map
)

// Flow is a graph as flow.yaml has it.
type Flow struct {
	Scope
	State  map[string]any            // types of state keys, in the words of schema.json; nil: inferred
	Output map[string]*expr.Template // what the run gives, by field

	lineAt func(pointer string) int // in flow.yaml; nil: it comes from elsewhere
}

// Scope is a graph over a state: that of a flow, or of a node with `flow`.
type Scope struct {
	Start    string // the first node
	Nodes    map[string]*Node
	MaxSteps int // visits of nodes, at least 1

	pointer string // into flow.yaml
}

// Node is one node of a graph. What it does is one of Run, Flow, Branches, Ask and Wait; a
// node without any only decides. With Map it does Run or Flow for each item.
type Node struct {
	Name        string
	Line        int // in flow.yaml
	Description string

	Run      *expr.Template // the name of a unit
	Units    []string       // those that Run may name where it is an expression
	Flow     *Scope
	Scoping  Scoping // of Flow
	Branches map[string]*Node
	Ask      *Ask
	Wait     *expr.Template // a duration, or a time as in RFC 3339
	Map      *Map

	With     *expr.Template // an object: the unit's input, or the first state of Flow; nil: an empty one
	Set      *expr.Template // an object: what becomes of the state; nil: nothing
	Action   *expr.Template // sees the state after Set; nil: Default, of Flow the last action in it, of Ask the answer
	Next     Next
	When     *expr.Template // nil: always
	Timeout  time.Duration  // of one try of Run, else of the whole; 0: none of its own
	Retry    Retry
	Fallback *expr.Template // nil: none
	Cache    time.Duration  // 0: never
	Visits   int            // how often it may be visited in its scope; 0: as often as MaxSteps allows

	pointer string // into flow.yaml
}

// Pointer is where the node stands in flow.yaml.
func (n *Node) Pointer() string { return n.pointer }

// Scoping is how the state of a sub-flow belongs to the state around it.
type Scoping string

// The scopings, by their names in flow.yaml.
const (
	Inherit  Scoping = "inherit"  // it sees the state around it, and keeps its writes
	Shared   Scoping = "shared"   // its writes go through
	Isolated Scoping = "isolated" // it sees With alone
)

// The actions with a meaning of their own.
const (
	Default   = "default"
	Error     = "error"     // it failed
	TimedOut  = "timeout"   // its time was up; Error where there is no such edge
	Exhausted = "exhausted" // it was visited as often as it may
)

// End is the target that ends a scope.
const End = "end"

// Next is where the walk goes on after a node.
type Next struct {
	Always   string            // for every action but the reserved ones; "": ByAction decides
	ByAction map[string]string // by action; nil: the scope ends
}

// Map has a node do its work for each item of a list.
type Map struct {
	Over     *expr.Template
	As       string // the name of the item in expressions; "item" where flow.yaml has none
	Parallel int    // items at once
	Max      int    // items
	Tolerate Tolerance
	Collect  *expr.Template // what of an item goes into the list; nil: out
}

// Tolerance is how many items of a map may fail.
type Tolerance struct {
	Items   int
	Percent float64 // of the items; counts where Items is 0
}

// Ask is a question to a person.
type Ask struct {
	Question  *expr.Template
	Show      *expr.Template // an object of values and files; nil: nothing
	Form      map[string]any // a schema of what is filled in; nil: nothing is
	Answers   []string       // the actions; approve and reject where flow.yaml has none
	Approvers []string       // who alone may answer, see api.CheckApprovers; nil: who may see the run
}

// Retry says when a failed try is followed by another one.
type Retry struct {
	Tries   int           // in all; 0 and 1: one
	Wait    time.Duration // before the second try
	Factor  float64       // by which the wait grows; 0: 1
	MaxWait time.Duration // 0: none
	On      []string      // categories and kinds of errors; nil: all but refusals, wrong inputs and cancellation
}

// Bounds counts calls and scopes.
func (f *Flow) Bounds() Bounds {
	return Bounds{LeastCalls: fewest(&f.Scope), MostCalls: most(&f.Scope), Depth: deepest(&f.Scope)}
}

// UnitNames lists the units that a flow may call itself, sorted, each once.
func (f *Flow) UnitNames() []string { return sortedUnique(unitNames(&f.Scope)) }

// MarshalJSON writes the flow so that Parse reads it as the same one. What is as it is without
// being said is left out.
func (f *Flow) MarshalJSON() ([]byte, error) { return strictjson.Encode(f.object()) }

// YAML writes the flow as flow.yaml, likewise. Comments of the file that it was read from are
// lost.
func (f *Flow) YAML() ([]byte, error) { return strictyaml.Encode(f.object(), keyOrder) }

// Mermaid writes the flow as a Mermaid flowchart, with the states of steps, which may be none.
func (f *Flow) Mermaid(steps []Step) string {
	text := newPicture(f, steps).mermaid()
	if len(steps) > 0 {
		text += mermaidStates
	}
	return text
}

// Tree writes the flow as lines for a terminal, with the states of steps, which may be none.
func (f *Flow) Tree(steps []Step) string {
	t := &tree{picture: newPicture(f, steps)}
	t.scope(&f.Scope, "", "")
	return t.String()
}
