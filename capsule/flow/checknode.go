package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// effect is what a node may do to the walk.
type effect struct {
	written env // into the state of its scope
	shared  env // the part of that which a shared sub-flow writes, also where it fails
	actions
}

// failureKey is what an edge for a failure leaves in the state.
var failureKey = map[string]*expr.Type{"error": nil}

func null() *expr.Type { return &expr.Type{Kinds: expr.Null} }

// node checks a node that is reached with a state.
func (c *checker) node(n *Node, state env, vars types) effect {
	seen := vars.with("state", state.typ()).with("visits", nil)
	c.expects(n, "when", n.When, expr.Bool, seen, state)
	result, inner := c.result(n, state, seen)
	e := effect{shared: inner.written}
	if n.Scoping != Shared || n.Map != nil {
		e.shared = env{}
	}
	after := seen.with("out", result).with("errors", &expr.Type{Kinds: expr.List}).with("run", nil).with("error", nil)
	e.written = e.shared.with(c.set(n, after, state))
	changed := state.with(e.written) // is what the action sees
	e.actions = c.chosen(n, after.with("state", changed.typ()), changed, inner)
	if c.quiet == 0 {
		c.edges(n, e.actions)
		c.lasts(n)
	}
	return e
}

// result checks the work of a node and returns the type of `out`. The ending is that of its
// sub-flow.
func (c *checker) result(n *Node, state env, seen types) (*expr.Type, ending) {
	inside := seen
	if n.Map != nil {
		c.expects(n, "map", n.Map.Over, expr.List, seen, state)
		item := n.Map.Over.Type(seen)
		if !item.Any() && item.Kinds&expr.List != 0 {
			item = item.Item
		} else {
			item = nil
		}
		inside = seen.with(n.Map.As, item).with("index", &expr.Type{Kinds: expr.Number})
	}
	result, inner := c.worked(n, state, inside)
	if n.Fallback != nil {
		fallen := inside.with("error", nil)
		c.references(n.Fallback, fallen, state)
		result = expr.Join(result, n.Fallback.Type(fallen))
	}
	if n.Map == nil {
		return result, inner
	}
	if n.Map.Collect != nil {
		collecting := inside.with("out", result).with("errors", nil).with("run", nil).with("error", nil)
		c.references(n.Map.Collect, collecting, state)
		result = n.Map.Collect.Type(collecting)
	}
	if !result.Any() {
		result = expr.Join(result, null())
	}
	return &expr.Type{Kinds: expr.List, Item: result}, ending{}
}

func (c *checker) worked(n *Node, state env, seen types) (*expr.Type, ending) {
	switch {
	case n.Run != nil:
		return c.run(n, state, seen), ending{}
	case n.Flow != nil:
		return c.subflow(n, state, seen)
	case n.Branches != nil:
		return c.branches(n, state, seen), ending{}
	case n.Ask != nil:
		c.expects(n, "ask", n.Ask.Question, expr.Text, seen, state)
		c.references(n.Ask.Show, seen, state)
		return answerType(n.Ask), ending{}
	case n.Wait != nil:
		c.expects(n, "wait", n.Wait, expr.Text, seen, state)
	}
	return null(), ending{}
}

// run holds the mapping of a node against the contract of each unit that it may name.
func (c *checker) run(n *Node, state env, seen types) *expr.Type {
	c.expects(n, "run", n.Run, expr.Text, seen, state)
	c.expects(n, "with", n.With, expr.Object, seen, state)
	c.dynamic(n)
	var result *expr.Type
	for i, name := range n.UnitNames() {
		known, found := c.unit(n, name)
		var out *expr.Type
		if found && known != nil {
			c.mapping(n, name, known.Input.Shape(), seen)
			out = typeOf(known.Output.Shape())
		}
		if i == 0 {
			result = out
			continue
		}
		result = expr.Join(result, out)
	}
	return result
}

func (c *checker) unit(n *Node, name string) (*contract.Contract, bool) {
	if c.terms.Units == nil {
		return nil, false
	}
	known, found := c.terms.Units(name)
	if !found {
		c.report(n.at("run"), "there is no unit "+fault.Quote(name), "`aod units` shows those that are there")
	}
	return known, found
}

// dynamic finds names of units that an expression may give and that aren't allowed.
func (c *checker) dynamic(n *Node) {
	if n.Units == nil {
		return
	}
	names, _ := n.Run.Outcomes()
	for _, name := range names {
		if text, ok := name.(string); !ok || !slices.Contains(n.Units, text) {
			c.report(n.at("run"),
				fmt.Sprintf("run may give %s, which isn't among units", fault.Quote(fmt.Sprint(name))),
				"add it to units")
		}
	}
}

func (c *checker) subflow(n *Node, state env, seen types) (*expr.Type, ending) {
	c.expects(n, "with", n.With, expr.Object, seen, state)
	first := env{}
	if n.With != nil {
		first = keysOf(n.With, seen)
	}
	inside := types{}
	for name, t := range seen {
		if name != "state" && name != "visits" {
			inside[name] = t
		}
	}
	if n.Scoping == Isolated {
		inside = types{"input": first.typ()}
	} else {
		first = state.with(first)
	}
	end := c.scope(n.Flow, first, inside)
	if n.Scoping == Shared && n.With != nil {
		end.written = end.written.with(keysOf(n.With, seen))
	}
	return end.written.typ(), end
}

// keysOf are the keys that a `set` or a `with` writes.
func keysOf(t *expr.Template, seen types) env {
	of := t.Type(seen)
	if of.Any() || of.Kinds&expr.Object == 0 {
		return env{open: true, loose: true}
	}
	return env{keys: of.Fields, open: !of.Closed, loose: of.Fields == nil}
}

func (c *checker) branches(n *Node, state env, seen types) *expr.Type {
	out := &expr.Type{Kinds: expr.Object, Closed: true, Fields: map[string]*expr.Type{}}
	for _, name := range sortedKeys(n.Branches) {
		branch := n.Branches[name]
		c.expects(branch, "when", branch.When, expr.Bool, seen, state)
		result, _ := c.result(branch, state, seen)
		if branch.When != nil {
			result = expr.Join(result, null())
		}
		out.Fields[name] = result
		if c.quiet == 0 {
			c.lasts(branch)
		}
	}
	return out
}

func answerType(a *Ask) *expr.Type {
	text := &expr.Type{Kinds: expr.Text}
	out := &expr.Type{Kinds: expr.Object, Closed: true, Fields: map[string]*expr.Type{}}
	if a.Form != nil {
		if form := typeOf(shapeOf(a.Form)); form.Any() {
			out.Closed = false
		} else {
			out.Closed = form.Closed
			for name, field := range form.Fields {
				out.Fields[name] = expr.Join(field, null())
			}
		}
	}
	out.Fields["by"], out.Fields["at"], out.Fields["note"] = text, text, expr.Join(text, null())
	return out
}

// set returns the keys that a node sets.
func (c *checker) set(n *Node, after types, state env) env {
	if n.Set == nil {
		return env{}
	}
	c.expects(n, "set", n.Set, expr.Object, after, state)
	keys := keysOf(n.Set, after)
	types := declared(c.flow.State)
	fresh := make(map[string]*expr.Type, len(keys.keys))
	for key, t := range keys.keys {
		if wanted, ok := types[key]; ok {
			if clash := clashes(t, wanted); clash != "" {
				c.report(n.at("set"), fmt.Sprintf("state.%s is declared as %s", key, clash), "")
			}
			t = wanted
		}
		fresh[key] = t
	}
	keys.keys = fresh
	return keys
}

// chosen are the actions by which a node may end, and a check of those that it gives itself.
func (c *checker) chosen(n *Node, after types, state env, inner ending) actions {
	skipped := actions{all: true}
	if n.When != nil || n.Fallback != nil && n.Action == nil {
		skipped.names = []string{Default}
	}
	switch {
	case n.Action != nil:
		c.expects(n, "action", n.Action, expr.Text|expr.Null, after, state)
		return skipped.with(named(n.Action))
	case n.Ask != nil:
		return skipped.with(actions{slices.Clone(n.Ask.Answers), true})
	case n.Flow != nil && n.Map == nil:
		return skipped.with(inner.actions)
	}
	return actions{[]string{Default}, true}
}

func named(t *expr.Template) actions {
	values, all := t.Outcomes()
	a := actions{all: all}
	for _, value := range values {
		text, _ := value.(string)
		if text == "" {
			text = Default
		}
		a.names = append(a.names, text)
	}
	return a.with(actions{all: true})
}

// lasts finds what takes longer than the flow may.
func (c *checker) lasts(n *Node) {
	limit := c.terms.Timeout
	if limit == 0 {
		return
	}
	if n.Ask != nil && n.Timeout > limit {
		c.report(n.at("timeout"), "the question is open for up to "+quantity.DurationText(n.Timeout)+
			", and a run of the flow lasts "+quantity.DurationText(limit)+" at most",
			"raise limits.timeout in agent.yaml")
	}
	if n.Wait == nil {
		return
	}
	text, _ := n.Wait.Literal()
	s, _ := text.(string)
	if d, err := time.ParseDuration(s); err == nil && d > limit {
		c.report(n.at("wait"), "it waits for "+quantity.DurationText(d)+", and a run of the flow lasts "+
			quantity.DurationText(limit)+" at most", "raise limits.timeout in agent.yaml")
	}
}
