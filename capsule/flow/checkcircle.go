package flow

import (
	"slices"
	"strings"
)

// circles finds calls that come back to the flow, where its recursion is 0: they would be
// refused. A node that names the flow itself is wrong; whether a unit that it calls comes to
// make such a call isn't sure.
func (c *checker) circles(s *Scope) {
	if c.terms.Name == "" || c.terms.Recursion > 0 {
		return
	}
	for _, name := range sortedKeys(s.Nodes) {
		c.circle(s.Nodes[name])
	}
}

func (c *checker) circle(n *Node) {
	const hint = "break the circle, or write recursion: 1 into agent.yaml"
	for _, unit := range n.UnitNames() {
		switch back := c.wayBack(unit); {
		case unit == c.terms.Name:
			c.add(n.at("run"), "it calls the flow that it is in, whose recursion is 0", hint, n.Units != nil)
		case back != nil:
			c.warn(n.at("run"), "the calls of "+strings.Join(back, ", then ")+
				" may come back to this flow, whose recursion is 0", hint)
		}
	}
	if n.Flow != nil {
		c.circles(n.Flow)
	}
	for _, name := range sortedKeys(n.Branches) {
		c.circle(n.Branches[name])
	}
}

// wayBack returns the shortest chain of units from one to a unit that may call the flow; nil
// where there is none.
func (c *checker) wayBack(unit string) []string {
	if c.terms.Callees == nil {
		return nil
	}
	seen := map[string]bool{unit: true}
	for waiting := [][]string{{unit}}; len(waiting) > 0; {
		chain := waiting[0]
		waiting = waiting[1:]
		for _, next := range c.terms.Callees(chain[len(chain)-1]) {
			if next == c.terms.Name {
				return chain
			}
			if !seen[next] {
				seen[next] = true
				waiting = append(waiting, append(slices.Clone(chain), next))
			}
		}
	}
	return nil
}
