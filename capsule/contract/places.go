package contract

import (
	"maps"
	"slices"
)

// FilePlaces lists where in the contract's document a string is declared to name a file,
// sorted: as pointers, wherever that is and whatever refers to it.
func (s *Schema) FilePlaces() []string {
	var places []string
	for _, n := range closure([]*node{s.root}, (*node).parts) {
		if n.filePath {
			places = append(places, n.pointer)
		}
	}
	slices.Sort(places)
	return places
}

// FileFields lists the top-level properties that are file references, sorted.
func (s *Schema) FileFields() []string {
	fields := map[string]bool{}
	for _, n := range allHere(s.root) {
		for name, child := range n.named["properties"] {
			fields[name] = fields[name] || slices.ContainsFunc(allHere(child), func(n *node) bool { return n.filePath })
		}
	}
	maps.DeleteFunc(fields, func(_ string, isFile bool) bool { return !isFile })
	return sorted(fields)
}
