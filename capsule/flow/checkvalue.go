package flow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow/expr"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// mapping holds a node's `with` against what a unit takes.
func (c *checker) mapping(n *Node, unit string, shape *contract.Shape, seen types) {
	if c.quiet > 0 {
		return
	}
	whose := "the input contract of " + unit
	if n.With == nil {
		c.members(n.at("run"), whose, map[string]*expr.Template{}, shape, seen)
		return
	}
	if n.With.Members() != nil {
		c.members(n.at("with"), whose, n.With.Members(), shape, seen)
		return
	}
	if clash := clashes(n.With.Type(seen), typeOf(shape)); clash != "" {
		c.report(n.at("with"), whose+" wants "+clash, "")
	}
}

// members holds the fields of an object against a contract.
func (c *checker) members(pointer, whose string, members map[string]*expr.Template, shape *contract.Shape, seen types) {
	for _, name := range shape.Required {
		if _, ok := members[name]; !ok {
			c.report(pointer, whose+" wants "+fault.Quote(name)+", which isn't there", "add "+name+": VALUE")
		}
	}
	for _, name := range sortedKeys(members) {
		at := pointer + "/" + strictjson.Escape(name)
		field, known := shape.Fields[name]
		if known {
			c.value(at, whose, name, members[name], field, seen)
			continue
		}
		c.extra(at, whose, name, shape)
	}
}

func (c *checker) extra(at, whose, name string, shape *contract.Shape) {
	known := sortedKeys(shape.Fields)
	near := fault.Nearest(name, known)
	switch {
	case shape.Closed && len(known) == 0:
		c.report(at, whose+" has no "+fault.Quote(name), "leave it out")
	case shape.Closed:
		c.report(at, whose+" has no "+fault.Quote(name), oneOf(name, known))
	case near != "":
		c.warn(at, whose+" doesn't name "+fault.Quote(name), "did you mean "+near+"?")
	}
}

func (c *checker) value(at, whose, name string, t *expr.Template, shape *contract.Shape, seen types) {
	if t.Members() != nil && slices.Contains(shape.Types, "object") {
		c.members(at, whose+" for "+name, t.Members(), shape, seen)
		return
	}
	if clash := clashes(t.Type(seen), typeOf(shape)); clash != "" {
		hint := ""
		if kindsOf(shape)&expr.File != 0 {
			hint = "a file comes from a field that is one, such as ${{ input.NAME }}; a text isn't a file's name here"
		}
		c.report(at, fmt.Sprintf("%s wants %s for %s", whose, clash, name), hint)
		return
	}
	c.choice(at, whose, name, t, shape)
}

// choice holds the literals that a value may be against the only ones that are allowed.
func (c *checker) choice(at, whose, name string, t *expr.Template, shape *contract.Shape) {
	if shape.Choices == nil {
		return
	}
	var known []string
	for _, choice := range shape.Choices {
		text, ok := choice.(string)
		if !ok {
			return // numbers are written in more than one way
		}
		known = append(known, text)
	}
	values, _ := t.Outcomes()
	for _, value := range values {
		if text, ok := value.(string); ok && !slices.Contains(known, text) {
			c.report(at, fmt.Sprintf("%s has no %s for %s", whose, fault.Quote(text), name), oneOf(text, known))
		}
	}
}

// clashes says what is wanted and what is given, where no value can be both; "" is none.
func clashes(given, wanted *expr.Type) string { return clash(given, wanted, 8) }

func clash(given, wanted *expr.Type, depth int) string {
	if given.Any() || wanted.Any() || depth == 0 {
		return ""
	}
	if given.Kinds&wanted.Kinds == 0 {
		return fmt.Sprintf("%s, and gets %s", wanted.Kinds, given.Kinds)
	}
	if given.Kinds == expr.List {
		if inner := clash(given.Item, wanted.Item, depth-1); inner != "" {
			return "a list with " + inner
		}
	}
	if given.Kinds == expr.Object {
		for _, name := range sortedKeys(wanted.Fields) {
			field, ok := given.Fields[name]
			if inner := clash(field, wanted.Fields[name], depth-1); ok && inner != "" && field.Kinds&expr.Null == 0 {
				return "an object whose " + name + " is " + inner
			}
		}
	}
	return ""
}

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
