package flow

import (
	"fmt"
	"slices"

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
