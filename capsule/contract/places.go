package contract

import "slices"

// FilePlaces lists where in the contract's document a string is declared to name a file,
// sorted: as pointers, wherever that is and whatever refers to it.
func (s *Schema) FilePlaces() []string {
	var places []string
	seen := map[*node]bool{}
	waiting := []*node{s.root}
	for len(waiting) > 0 {
		n := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if n == nil || seen[n] {
			continue
		}
		seen[n] = true
		if n.filePath {
			places = append(places, n.pointer)
		}
		waiting = append(waiting, n.parts()...)
	}
	slices.Sort(places)
	return places
}

// parts lists the schemas right below n, and what it refers to. Some may be nil, or twice.
func (n *node) parts() []*node {
	parts := append(n.inPlace(), n.items, n.additionalItems, n.contains, n.additionalProperties, n.propertyNames)
	parts = append(parts, n.tuple...)
	for _, child := range n.properties {
		parts = append(parts, child)
	}
	for _, p := range n.patterns {
		parts = append(parts, p.schema)
	}
	return parts
}
