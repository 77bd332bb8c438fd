package flow

import (
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// ending is what is known of a scope's end.
type ending struct {
	env     env // the state there
	written env // the keys that its nodes may have set
	actions
}

// actions are those by which something may end.
type actions struct {
	names []string // sorted, each once
	all   bool     // there are no others
}

func (a actions) with(more actions) actions {
	names := slices.Concat(a.names, more.names)
	slices.Sort(names)
	return actions{names: slices.Compact(names), all: a.all && more.all}
}

// scope checks a graph whose state begins as first.
func (c *checker) scope(s *Scope, first env, vars types) ending {
	if c.quiet == 0 {
		c.graph(s)
	}
	states := c.flowing(s, first, vars)
	end := ending{actions: actions{all: true}}
	for _, name := range sortedKeys(s.Nodes) {
		before, reached := states[name]
		if !reached {
			continue
		}
		n := s.Nodes[name]
		effect := c.node(n, before, vars)
		end.written = end.written.with(effect.written)
		for _, way := range c.ways(n, before, effect) {
			if way.target == End {
				end.env, _ = end.env.joined(way.env)
				end.actions = end.with(way.actions)
			}
		}
	}
	return end
}

// flowing finds the state before each node that can be reached: it goes on until nothing is
// new any more.
func (c *checker) flowing(s *Scope, first env, vars types) map[string]env {
	c.quiet++
	defer func() { c.quiet-- }()
	states := map[string]env{s.Start: first}
	for waiting := []string{s.Start}; len(waiting) > 0 && c.work > 0; {
		name := waiting[0]
		waiting = waiting[1:]
		n, ok := s.Nodes[name]
		if !ok {
			delete(states, name)
			continue
		}
		c.work -= 1 + len(states[name].keys)/16
		for _, way := range c.ways(n, states[name], c.node(n, states[name], vars)) {
			if way.target == End {
				continue
			}
			known, reached := states[way.target]
			joined, changed := known.joined(way.env)
			if !reached {
				joined, changed = way.env, true
			}
			states[way.target] = joined
			if changed && !slices.Contains(waiting, way.target) {
				waiting = append(waiting, way.target)
			}
		}
	}
	return states
}

// way is an edge that may be taken, with the state and the actions that take it.
type way struct {
	target string
	env    env
	actions
}

// ways lists the edges of a node. Those that no action can take are among them, so that
// nothing behind them is taken for unreachable, too.
func (c *checker) ways(n *Node, before env, effect effect) []way {
	after := before.with(effect.written)
	if n.Next.ByAction == nil {
		target := n.Next.Always
		if target == "" {
			target = End
		}
		return []way{{target, after, effect.actions}}
	}
	var ways []way
	for _, action := range sortedKeys(n.Next.ByAction) {
		state := after
		switch action {
		case Error, TimedOut:
			state = before.with(effect.shared).with(env{keys: failureKey})
		case Exhausted:
			state = before
		}
		ways = append(ways, way{n.Next.ByAction[action], state, actions{[]string{action}, true}})
	}
	return ways
}

// graph finds nodes that nothing leads to, ways without an end, and loops without a bound.
func (c *checker) graph(s *Scope) {
	reached := reachable(s)
	for _, name := range sortedKeys(s.Nodes) {
		if !reached[name] {
			c.report(s.Nodes[name].pointer, "no edge from "+s.Start+", where it starts, leads to "+name,
				"add an edge to it, or leave it out")
		}
	}
	ends := endable(s, reached)
	var trapped []string
	for _, name := range sortedKeys(s.Nodes) {
		if reached[name] && !ends[name] {
			trapped = append(trapped, name)
		}
	}
	if len(trapped) > 0 {
		first := slices.MinFunc(trapped, func(a, b string) int { return s.Nodes[a].Line - s.Nodes[b].Line })
		c.report(s.Nodes[first].pointer, "no way leads from "+first+" to an end", "add an edge to end")
		return
	}
	for _, loop := range unbounded(s, reached) {
		c.warn(s.Nodes[loop[0]].pointer, "nothing bounds the loop of "+strings.Join(loop[:min(len(loop), 5)], ", ")+
			" but max_steps",
			"add max_visits to one of them, and an edge exhausted")
	}
}

func reachable(s *Scope) map[string]bool {
	reached := map[string]bool{}
	for waiting := []string{s.Start}; len(waiting) > 0; {
		name := waiting[0]
		waiting = waiting[1:]
		if n, ok := s.Nodes[name]; ok && !reached[name] {
			reached[name] = true
			waiting = append(waiting, n.Next.Targets()...)
		}
	}
	return reached
}

// endable are the nodes from which some way leads to an end.
func endable(s *Scope, reached map[string]bool) map[string]bool {
	ends := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for name := range reached {
			if !ends[name] && leadsTo(s.Nodes[name].Next, ends) {
				ends[name], changed = true, true
			}
		}
	}
	return ends
}

func leadsTo(next Next, ends map[string]bool) bool {
	if next.Always == End || next.Always == "" && next.ByAction == nil {
		return true
	}
	for _, target := range next.ByAction {
		if target == End {
			return true
		}
	}
	return slices.ContainsFunc(next.Targets(), func(target string) bool { return ends[target] })
}

// unbounded are the loops that go through no node with max_visits.
func unbounded(s *Scope, reached map[string]bool) [][]string {
	var found [][]string
	for _, part := range loops(s, func(n *Node) bool { return n.Visits == 0 }) {
		free := slices.DeleteFunc(part, func(name string) bool { return !reached[name] })
		if len(free) > 0 {
			slices.SortFunc(free, func(a, b string) int { return s.Nodes[a].Line - s.Nodes[b].Line })
			found = append(found, free)
		}
	}
	return found
}

// edges holds the edges of a node against the actions by which it may end.
func (c *checker) edges(n *Node, can actions) {
	for _, name := range can.names {
		if slices.Contains(reserved, name) && n.Action != nil {
			c.report(n.at("action"), fault.Quote(name)+" is an action that a node can't choose itself",
				"error, timeout and exhausted have a meaning of their own; take another word")
		}
	}
	if n.Next.ByAction == nil {
		return
	}
	for _, name := range can.names {
		if _, ok := n.Next.ByAction[name]; !ok && !slices.Contains(reserved, name) {
			c.report(n.at("next"), "no edge takes the action "+fault.Quote(name),
				"add "+name+": NODE, or "+name+": end")
		}
	}
	for _, name := range sortedKeys(n.Next.ByAction) {
		c.edge(n, name, can)
	}
}

func (c *checker) edge(n *Node, action string, can actions) {
	at := n.at("next") + "/" + action
	works := n.Run != nil || n.Flow != nil || n.Branches != nil || n.Ask != nil
	switch {
	case slices.Contains(can.names, action):
	case action == Exhausted && n.Visits == 0:
		c.report(at, "nothing takes the edge exhausted: the node has no max_visits",
			"add max_visits, or leave the edge out")
	case action == TimedOut && (!works || n.Ask != nil && n.Timeout == 0):
		c.report(at, "nothing takes the edge timeout: the node has none", "add timeout, or leave the edge out")
	case slices.Contains(reserved, action):
	case can.all && len(can.names) == 1 && n.Action == nil && n.Ask == nil && n.Flow == nil:
		c.report(at, "nothing takes the edge "+fault.Quote(action)+": the node has no action, which is default then",
			"add action: "+action+", or an expression")
	case can.all:
		c.report(at, "nothing takes the edge "+fault.Quote(action), oneOf(action, can.names))
	}
}
