package flow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Bounds are what a run of a flow takes, its own calls alone: a unit that it calls may call
// others.
type Bounds struct {
	LeastCalls int // on the way to an end with the fewest, where no map has an item and nothing fails
	MostCalls  int // with every try, every item and every visit; math.MaxInt32 where it is more
	Depth      int // of scopes, from 1
}

// manyCalls is where counting ends.
const manyCalls = math.MaxInt32

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func unitNames(s *Scope) (names []string) {
	for _, n := range s.Nodes {
		names = append(names, n.unitNames()...)
	}
	return names
}

// UnitNames lists the units that the node may call itself, sorted, each once; not those of
// nodes in it.
func (n *Node) UnitNames() []string {
	if n.Run == nil {
		return nil
	}
	if literal, ok := n.Run.Literal(); ok {
		name, _ := literal.(string)
		return []string{name}
	}
	return sortedUnique(slices.Clone(n.Units))
}

func (n *Node) unitNames() []string {
	names := n.UnitNames()
	for _, branch := range n.Branches {
		names = append(names, branch.unitNames()...)
	}
	if n.Flow != nil {
		names = append(names, unitNames(n.Flow)...)
	}
	return names
}

func sortedUnique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// few is how many calls a visit of a node makes at least.
func (n *Node) few() int {
	switch {
	case n.Map != nil || n.When != nil:
		return 0
	case n.Run != nil && n.Cache == 0:
		return 1
	case n.Flow != nil:
		return fewest(n.Flow)
	}
	calls := 0
	for _, branch := range n.Branches {
		calls += branch.few()
	}
	return calls
}

// fewest is the length of the shortest way through a scope, in calls.
func fewest(s *Scope) int {
	best := map[string]int{s.Start: 0}
	least := manyCalls
	for waiting := []string{s.Start}; len(waiting) > 0; {
		slices.SortFunc(waiting, func(a, b string) int { return cmp.Or(best[a]-best[b], cmp.Compare(a, b)) })
		name := waiting[0]
		waiting = waiting[1:]
		n, ok := s.Nodes[name]
		if !ok {
			continue
		}
		calls := best[name] + n.few()
		if leadsTo(n.Next, nil) {
			least = min(least, calls)
		}
		for _, target := range n.Next.Targets() {
			if known, seen := best[target]; !seen || calls < known {
				best[target] = calls
				waiting = append(waiting, target)
			}
		}
	}
	if least == manyCalls {
		return 0
	}
	return least
}

// many is how many calls a visit of a node makes at most.
func (n *Node) many() int {
	calls := 0
	switch {
	case n.Run != nil:
		calls = 1
	case n.Flow != nil:
		calls = most(n.Flow)
	}
	for _, branch := range n.Branches {
		calls = added(calls, branch.many())
	}
	if n.Map != nil {
		calls = times(calls, n.Map.Max)
	}
	return times(calls, max(n.Retry.Tries, 1))
}

// most adds up what each node makes with all its visits. Nodes that exclude each other both
// count.
func most(s *Scope) int {
	looping := map[string]bool{}
	for _, loop := range loops(s, func(*Node) bool { return true }) {
		for _, name := range loop {
			looping[name] = true
		}
	}
	calls, largest := 0, 0
	for name, n := range s.Nodes {
		visits := 1
		if looping[name] {
			visits = cmp.Or(n.Visits, s.MaxSteps, DefaultSteps)
		}
		calls = added(calls, times(n.many(), visits))
		largest = max(largest, n.many())
	}
	return min(calls, times(largest, s.mostSteps()))
}

func deepest(s *Scope) int {
	depth := 1
	for _, n := range s.Nodes {
		depth = max(depth, 1+n.depth())
	}
	return depth
}

// depth is how many scopes are in a node.
func (n *Node) depth() int {
	depth := 0
	if n.Flow != nil {
		depth = deepest(n.Flow)
	}
	for _, branch := range n.Branches {
		depth = max(depth, 1+branch.depth())
	}
	return depth
}

func added(a, b int) int { return min(a+b, manyCalls) }

func times(a, b int) int {
	if a != 0 && b > manyCalls/a {
		return manyCalls
	}
	return a * b
}

// loops are the groups of nodes that lead to each other, over such nodes alone (the strongly
// connected components, by Tarjan).
func loops(s *Scope, through func(*Node) bool) [][]string {
	l := &looping{scope: s, through: through, index: map[string]int{}, low: map[string]int{}, on: map[string]bool{}}
	for _, name := range sortedKeys(s.Nodes) {
		if _, seen := l.index[name]; !seen && through(s.Nodes[name]) {
			l.visit(name)
		}
	}
	return l.found
}

type looping struct {
	scope      *Scope
	through    func(*Node) bool
	index, low map[string]int
	on         map[string]bool
	stack      []string
	found      [][]string
}

func (l *looping) visit(name string) {
	l.index[name], l.low[name] = len(l.index), len(l.index)
	l.stack, l.on[name] = append(l.stack, name), true
	itself := false
	for _, target := range l.scope.Nodes[name].Next.Targets() {
		n, ok := l.scope.Nodes[target]
		if !ok || !l.through(n) {
			continue
		}
		itself = itself || target == name
		if _, seen := l.index[target]; !seen {
			l.visit(target)
			l.low[name] = min(l.low[name], l.low[target])
		} else if l.on[target] {
			l.low[name] = min(l.low[name], l.index[target])
		}
	}
	if l.low[name] != l.index[name] {
		return
	}
	at := slices.Index(l.stack, name)
	group := slices.Clone(l.stack[at:])
	l.stack = l.stack[:at]
	for _, member := range group {
		l.on[member] = false
	}
	if len(group) > 1 || itself {
		l.found = append(l.found, group)
	}
}
