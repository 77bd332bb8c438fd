package contract

import (
	"maps"
	"slices"
)

// measure finds references that go round in place without ever reaching a field or
// an item, and contracts in which one value would be judged far too often: a short
// chain of anyOf over references doubles at each link.
func (c *compiler) measure() {
	nodes := slices.SortedFunc(maps.Values(c.nodes), func(a, b *node) int { return a.id - b.id })
	m := &measurer{c: c, state: make([]measureState, len(nodes))}
	for _, n := range nodes {
		m.visit(n)
	}
}

type measureState uint8

const (
	untouched measureState = iota
	open
	done
)

type measurer struct {
	c        *compiler
	state    []measureState
	reported bool // the first one explains all that build on it
}

func (m *measurer) visit(n *node) {
	if m.state[n.id] == done {
		return
	}
	m.state[n.id] = open
	n.expansion, n.height = 1, 1
	for _, child := range n.inPlace() {
		if m.state[child.id] == open {
			m.report(n, "let the recursion go through a field or an item",
				"the schema refers back to itself in a circle that no value could ever leave")
			continue
		}
		m.visit(child)
		n.expansion = min(n.expansion+child.expansion, maxExpansion+1)
		n.height = max(n.height, child.height+1)
	}
	m.state[n.id] = done
	if n.expansion > maxExpansion || n.height > maxInPlace {
		m.report(n, "use fewer alternatives (anyOf, oneOf, allOf, $ref) within one another",
			"one value would be checked against too many alternatives: the limit is %d in all, and %d within "+
				"one another", maxExpansion, maxInPlace)
	}
}

func (m *measurer) report(n *node, hint, format string, args ...any) {
	if !m.reported {
		m.c.fail(n.pointer, hint, format, args...)
	}
	m.reported = true
}
