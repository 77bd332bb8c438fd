package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func typed(nodes []*node, path, text string) (any, error) {
	var types kinds
	for _, n := range allHere(nodes...) {
		types |= n.types
	}
	if types&kindString != 0 {
		return text, nil
	}
	v, err := strictjson.Decode([]byte(text))
	isJSON := err == nil
	if isJSON && types.allows(kindOf(v)) {
		return v, nil
	}
	if types == 0 {
		return text, nil
	}
	got := "text that isn't JSON"
	if isJSON {
		got = kindOf(v).String()
	}
	return nil, fault.New(fault.Input, "field %s: expected %s, got %s", quote(path), types, got).
		WithHint("%s", typedHint(types))
}

func typedHint(types kinds) string {
	switch {
	case types&kindObject != 0:
		return `write JSON, such as {"key": "value"}, or set one field of it with a dotted path`
	case types&kindArray != 0:
		return `write JSON, such as ["one", "two"]`
	case types&kindBoolean != 0:
		return "write true or false"
	case types&kindInteger != 0:
		return "write a whole number, such as 3"
	case types&kindNumber != 0:
		return "write a number, such as 0.5"
	}
	return "write null"
}

// allHere returns the nodes and all schemas that judge the same value, without
// those that say what it is not or ask a question.
func allHere(nodes ...*node) []*node { return closure(nodes, (*node).alternatives) }

// descend returns the schemas of a field; none means that anything may stand there.
func descend(nodes []*node, key, path string) ([]*node, error) {
	var found []*node
	var known []string
	closed := false
	for _, n := range allHere(nodes...) {
		children := n.field(key)
		found = append(found, children...)
		known = append(known, sorted(n.named["properties"])...)
		rest := n.one["additionalProperties"]
		shut := rest != nil && rest.never()
		closed = closed || shut && len(children) == 0
	}
	if len(found) == 0 && closed {
		return nil, fault.New(fault.Input, "the contract has no field %s", quote(path)).
			WithHint("%s", knownHint(key, known))
	}
	return found, nil
}

// field lists the schemas that apply to a field of that name.
func (n *node) field(key string) []*node {
	var nodes []*node
	if child, ok := n.named["properties"][key]; ok {
		nodes = append(nodes, child)
	}
	for _, p := range n.patterns {
		if p.re.MatchString(key) {
			nodes = append(nodes, p.schema)
		}
	}
	if extra := n.one["additionalProperties"]; len(nodes) == 0 && extra != nil && extra.always == nil {
		nodes = append(nodes, extra)
	}
	return nodes
}

func knownHint(key string, known []string) string {
	slices.Sort(known)
	known = slices.Compact(known)
	if near := nearest(key, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "it allows no fields there"
	}
	return "it has " + show(strings.Join(known, ", "))
}
