package flow

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Units knows the units that a flow may name. The contract is nil where only the name is known.
type Units func(name string) (c *contract.Contract, known bool)

// Terms are what a flow is held against. Whatever isn't known is left out of the check.
type Terms struct {
	Units    Units              // nil: not known
	Contract *contract.Contract // the flow's own; nil: not known
	Timeout  time.Duration      // of its runs; 0: not known
	Calls    int                // that its runs may make; 0: as many as they like

	Name      string                     // the flow's own; "": not known
	Recursion int                        // how often it may stand again on the path of calls to it
	Callees   func(unit string) []string // the units that a unit may call; nil: not known
}

// Check finds what Parse can't see in the file alone: ways that lead nowhere, state that
// nothing sets, mappings that break a contract. Only what is surely wrong is an error. The
// flow is one that Parse read without errors. Findings are in the order of their lines.
func (f *Flow) Check(terms Terms) []fault.Finding {
	c := &checker{flow: f, terms: terms, work: maxWork}
	input := &expr.Type{Kinds: expr.Object}
	if terms.Contract != nil {
		input = typeOf(terms.Contract.Input.Shape())
	}
	vars := types{"input": input}
	first := env{keys: maps.Clone(input.Fields), open: !input.Closed, loose: input.Fields == nil}
	for key, t := range declared(f.State) {
		if _, ok := first.keys[key]; ok {
			first.keys[key] = t
		}
	}
	end := c.scope(&f.Scope, first, vars)
	c.output(end.env, vars)
	c.budget()
	c.circles(&f.Scope)
	slices.SortStableFunc(c.findings, func(a, b fault.Finding) int { return cmp.Compare(a.Line, b.Line) })
	return slices.CompactFunc(c.findings, func(a, b fault.Finding) bool { return a == b })
}

// maxWork bounds how many nodes are looked at, each as often as that is needed: a loop, and a
// scope within it, more than once. A large state counts as more than one.
const maxWork = 200_000

// checker gathers what is wrong with a flow.
type checker struct {
	flow     *Flow
	terms    Terms
	work     int
	quiet    int // above 0: it only infers
	findings []fault.Finding
}

func (c *checker) add(pointer, message, hint string, warning bool) {
	if c.quiet > 0 || c.work <= 0 {
		return
	}
	line := 0
	if c.flow.lineAt != nil {
		line = c.flow.lineAt(pointer)
	}
	c.findings = append(c.findings, fault.Finding{
		File: FileName, Line: line, Pointer: pointer, Message: message,
		Hint: hint, Warning: warning,
	})
}

func (c *checker) report(pointer, message, hint string) { c.add(pointer, message, hint, false) }

func (c *checker) warn(pointer, message, hint string) { c.add(pointer, message, hint, true) }

// at is the place of a node's key.
func (n *Node) at(key string) string { return n.pointer + "/" + strictjson.Escape(key) }

// output holds what the flow gives against its own contract.
func (c *checker) output(state env, vars types) {
	vars = vars.with("state", state.typ())
	for _, name := range slices.Sorted(maps.Keys(c.flow.Output)) {
		c.references(c.flow.Output[name], vars, state)
	}
	if c.terms.Contract == nil {
		return
	}
	shape := c.terms.Contract.Output.Shape()
	c.members("/output", "its own output contract", c.flow.Output, shape, vars)
}

// budget holds the least calls that any way to the end needs against those that are allowed.
func (c *checker) budget() {
	if bounds := c.flow.Bounds(); c.terms.Calls > 0 && bounds.LeastCalls > c.terms.Calls {
		c.report("/nodes",
			plural(bounds.LeastCalls, "call")+" at least are on every way to the end, and budgets.calls allows "+
				plural(c.terms.Calls, "call"), "raise budgets.calls in agent.yaml")
	}
}

// circles finds calls that come back to the flow, where its recursion is 0: they would be
// refused. A node that names the flow itself is wrong; whether a unit that it calls comes to
// make such a call isn't sure.
func (c *checker) circles(s *Scope) {
	if c.terms.Name == "" || c.terms.Recursion > 0 {
		return
	}
	for _, name := range sortedKeys(s.Nodes) {
		c.circle(s.Nodes[name])
	}
}

func (c *checker) circle(n *Node) {
	const hint = "break the circle, or write recursion: 1 into agent.yaml"
	for _, unit := range n.UnitNames() {
		switch back := c.wayBack(unit); {
		case unit == c.terms.Name:
			c.add(n.at("run"), "it calls the flow that it is in, whose recursion is 0", hint, n.Units != nil)
		case back != nil:
			c.warn(n.at("run"), "the calls of "+strings.Join(back, ", then ")+
				" may come back to this flow, whose recursion is 0", hint)
		}
	}
	if n.Flow != nil {
		c.circles(n.Flow)
	}
	for _, name := range sortedKeys(n.Branches) {
		c.circle(n.Branches[name])
	}
}

// wayBack returns the shortest chain of units from one to a unit that may call the flow; nil
// where there is none.
func (c *checker) wayBack(unit string) []string {
	if c.terms.Callees == nil {
		return nil
	}
	seen := map[string]bool{unit: true}
	for waiting := [][]string{{unit}}; len(waiting) > 0; {
		chain := waiting[0]
		waiting = waiting[1:]
		for _, next := range c.terms.Callees(chain[len(chain)-1]) {
			if next == c.terms.Name {
				return chain
			}
			if !seen[next] {
				seen[next] = true
				waiting = append(waiting, append(slices.Clone(chain), next))
			}
		}
	}
	return nil
}
