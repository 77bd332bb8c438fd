package flow

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
)

// expects checks the references of a value, and that it can be of a kind.
func (c *checker) expects(n *Node, key string, t *expr.Template, kinds expr.Kind, seen types, state env) {
	if t == nil {
		return
	}
	c.references(t, seen, state)
	if of := t.Type(seen); !of.Any() && of.Kinds&kinds == 0 {
		c.report(n.at(key), fmt.Sprintf("%s must be %s, and this gives %s", key, kinds, of.Kinds), "")
	}
}

// references checks the members that a value's expressions name.
func (c *checker) references(t *expr.Template, seen types, state env) {
	if c.quiet > 0 {
		return
	}
	for _, ref := range t.References() {
		if ref.Path[0] == "state" && len(ref.Path) > 1 {
			if _, set := state.keys[ref.Path[1]]; !set {
				c.unset(ref, state)
				continue
			}
		}
		c.reference(ref, seen[ref.Path[0]])
	}
}

func (c *checker) unset(ref expr.Reference, state env) {
	key := ref.Path[1]
	message := ref.Position + ": no way to here sets state." + key
	switch {
	case ref.Guarded || state.loose:
	case state.open:
		c.warn(ref.Pointer, message+", and the input's contract doesn't name it", oneOfState(key, state))
	default:
		c.report(ref.Pointer, message, oneOfState(key, state))
	}
}

func oneOfState(key string, state env) string {
	if len(state.keys) == 0 {
		return "set it in a node before"
	}
	return oneOf(key, sortedKeys(state.keys)) + "; write state." + key + " ?? … where it may be missing"
}

// reference follows a path into a type.
func (c *checker) reference(ref expr.Reference, t *expr.Type) {
	for i, name := range ref.Path[1:] {
		if t.Any() {
			return
		}
		before := strings.Join(ref.Path[:i+1], ".")
		kind := t.Kinds &^ expr.Null
		switch {
		case kind == expr.Object && t.Fields != nil:
			if field, ok := t.Fields[name]; ok {
				t = field
				continue
			}
			c.unknownField(ref, before, name, sortedKeys(t.Fields), t.Closed)
			return
		case kind == expr.List:
			if _, err := strconv.Atoi(name); err != nil {
				c.report(ref.Pointer, ref.Position+": "+before+" is a list, which has no "+name,
					"map over it, or take an item of it: "+before+"[0]")
				return
			}
			t = t.Item
		case kind == expr.File:
			if field, ok := expr.FileFields[name]; ok {
				t = field
				continue
			}
			c.unknownField(ref, before, name, sortedKeys(expr.FileFields), true)
			return
		case kind&(expr.Object|expr.List|expr.File) == 0 && kind != 0:
			c.report(ref.Pointer, fmt.Sprintf("%s: %s is %s, which has no %s", ref.Position, before, kind, name), "")
			return
		default:
			return
		}
	}
}

func (c *checker) unknownField(ref expr.Reference, before, name string, known []string, closed bool) {
	message := fmt.Sprintf("%s: %s has no %s", ref.Position, before, fault.Quote(name))
	hint := ""
	if len(known) > 0 {
		hint = oneOf(name, known)
	}
	if closed && !ref.Guarded {
		c.report(ref.Pointer, message, hint)
		return
	}
	c.warn(ref.Pointer, message+" by its contract", hint)
}
