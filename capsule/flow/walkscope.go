package flow

import (
	"cmp"
	"context"
	"fmt"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
)

// frame is what the expressions of a scope see.
type frame struct {
	*walk
	input  any
	state  *state
	visits map[string]any // of each node of the scope so far, by name
	items  expr.Vars      // of the maps around
}

// eval evaluates a template for the node at the address.
func (f frame) eval(ctx context.Context, address string, t *expr.Template, also expr.Vars) (any, error) {
	vars := make(expr.Vars, len(f.items)+len(also)+3)
	for _, some := range []expr.Vars{f.items, {"input": f.input, "state": f.state.values, "visits": f.visits}, also} {
		for name, value := range some {
			vars[name] = value
		}
	}
	value, err := t.Eval(ctx, vars)
	if err != nil {
		return nil, badExpression(ctx, address, err)
	}
	return value, nil
}

// object evaluates a template that has to give an object. A nil template gives an empty one.
func (f frame) object(
	ctx context.Context, address, field string, t *expr.Template, also expr.Vars,
) (map[string]any, error) {
	if t == nil {
		return map[string]any{}, nil
	}
	value, err := f.eval(ctx, address, t, also)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, unexpected(address, field, "an object", value)
	}
	return object, nil
}

// text evaluates a template that has to give a text.
func (f frame) text(ctx context.Context, address, field string, t *expr.Template, also expr.Vars) (string, error) {
	value, err := f.eval(ctx, address, t, also)
	if err != nil {
		return "", err
	}
	text, ok := value.(string)
	if !ok && value != nil {
		return "", unexpected(address, field, "a text", value)
	}
	return text, nil
}

func unexpected(address, field, expected string, value any) *failing {
	return failed(address, KindExpression, "%s: expected %s, found %s", field, expected, nature(value))
}

// nature says what a value is, and nothing of what is in it.
func nature(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case File:
		return "a file"
	}
	return "a number"
}

// scope is a graph that is being walked: one node at a time.
type scope struct {
	frame
	graph   *Scope
	prefix  string          // of the addresses in it
	steps   int             // visits so far
	written map[string]bool // keys that its nodes have set
}

// run goes from node to node and returns the last action.
func (s *scope) run(ctx context.Context) (string, error) {
	s.visits, s.written = map[string]any{}, map[string]bool{}
	action := Default
	for at := s.graph.Start; at != End && at != ""; {
		if cause := context.Cause(ctx); cause != nil {
			return action, cause
		}
		node, ok := s.graph.Nodes[at]
		if !ok {
			return action, failed(s.prefix+at, KindNoRoute, "there is no node %q", at)
		}
		address, err := s.arrive(node)
		if err != nil {
			return action, err
		}
		if action, err = s.visit(ctx, node, address); err != nil {
			return action, err
		}
		if at, ok = node.Next.after(action); !ok {
			return action, failed(address, KindNoRoute, "it ended with the action %q, and no edge takes that", action).
				withHint("add %s to its next, or an action that is there", action)
		}
	}
	return action, nil
}

// arrive counts a visit and returns its address.
func (s *scope) arrive(node *Node) (string, error) {
	address := visitAddress(s.prefix, node.Name, s.count(node))
	if s.steps++; s.steps > s.graph.mostSteps() {
		return "", failed(address, KindMaxSteps, "its scope has made %d steps, which is all that it may",
			s.graph.mostSteps()).
			withHint("raise max_steps, or bound the loop with max_visits")
	}
	return address, fitting(address)
}

func (s *scope) count(node *Node) int {
	before, _ := s.visits[node.Name].(int64)
	s.visits[node.Name] = before + 1
	return int(before + 1)
}

func fitting(address string) error {
	if len(address) <= MaxAddress {
		return nil
	}
	return failed(address[:MaxAddress], KindTooDeep, "the address of a step is longer than %d bytes", MaxAddress)
}

func (g *Scope) mostSteps() int { return cmp.Or(g.MaxSteps, DefaultSteps) }

// after returns where the walk goes on by an action; "" and End end the scope.
func (n Next) after(action string) (target string, ok bool) {
	if target, ok = n.ByAction[action]; ok {
		return target, true
	}
	if n.Always == "" {
		return End, n.ByAction == nil
	}
	return n.Always, action != Error && action != TimedOut && action != Exhausted
}

// onFailure returns the action by which the walk goes on after a failure; "": it doesn't.
func (n Next) onFailure(f Failure) string {
	if _, ok := n.ByAction[TimedOut]; ok && f.Kind == KindTimeout {
		return TimedOut
	}
	if _, ok := n.ByAction[Error]; ok {
		return Error
	}
	return ""
}

// itemAddress returns the address of an item of a map.
func itemAddress(address string, index int) string { return fmt.Sprintf("%s[%d]", address, index) }
