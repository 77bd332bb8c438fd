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
		if seen[n] {
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
