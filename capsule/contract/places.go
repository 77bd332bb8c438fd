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
func (s *Schema) FileFields() []string { return s.fields(isFile) }

// TakingFiles lists the top-level properties that files can be given for, sorted: file
// references and lists of them.
func (s *Schema) TakingFiles() []string {
	return s.fields(func(n *node) bool {
		item := n.one["items"]
		return isFile(n) || item != nil && slices.ContainsFunc(allHere(item), isFile)
	})
}

func isFile(n *node) bool { return n.filePath }

// fields lists the top-level properties that some applicable part of the contract says that of.
func (s *Schema) fields(says func(*node) bool) []string {
	fields := map[string]bool{}
	for _, n := range allHere(s.root) {
		for name, child := range n.named["properties"] {
			fields[name] = fields[name] || slices.ContainsFunc(allHere(child), says)
		}
	}
	maps.DeleteFunc(fields, func(_ string, said bool) bool { return !said })
	return sorted(fields)
}
