package mask

import "strconv"

// Names keeps names apart that are the same once they are masked. The zero Names has none.
type Names struct {
	taken map[string]bool
	next  map[string]int // the number of the next one, by name
}

// Keep takes a name as it is.
func (n *Names) Keep(name string) {
	if n.taken == nil {
		n.taken, n.next = map[string]bool{}, map[string]int{}
	}
	n.taken[name] = true
}

// New takes a name, with a number before it if it is taken: 2-NAME.
func (n *Names) New(name string) string {
	free := name
	for n.taken[free] {
		n.next[name] = max(n.next[name], 1) + 1
		free = strconv.Itoa(n.next[name]) + "-" + name
	}
	n.Keep(free)
	return free
}
