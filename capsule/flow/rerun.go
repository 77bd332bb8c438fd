package flow

import (
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// From returns the kept steps of an earlier walk that a rerun from an address takes over: in
// each scope on the way to it those before it, and beside it the other branches and items. The
// joins above it, what came later and what was open are left out. The error says from where
// the flow, as it is now, could be rerun.
func (f *Flow) From(kept []Step, address string) ([]Step, error) {
	parts, ok := addressParts(address)
	if !ok {
		return nil, fault.New(fault.BadRequest, "%s is not the address of a step", fault.Quote(address)).
			WithHint("aod flow steps RUN lists the addresses")
	}
	t := newTakeover(kept)
	if err := t.to(&f.Scope, "", parts); err != nil {
		return nil, err
	}
	return t.steps(kept), nil
}

// FromFailed returns the kept steps that a rerun takes over which is to run what has failed
// or is missing, and what comes after that in its scope. Failures that were borne count, too.
func (f *Flow) FromFailed(kept []Step) []Step {
	t := newTakeover(kept)
	t.mend(&f.Scope, "")
	return t.steps(kept)
}

// patchMark ends the address of a step that isn't a node's: what a rerun was told to set.
const patchMark = "="

// Set returns a step that a rerun takes over besides those of From: with it, the state has the
// values, which are JSON values and Files, before the node at the address begins. It has to be
// a node of a scope, since no other thing sets anything. The error is a BadRequest fault.
func (f *Flow) Set(address string, values map[string]any) (Step, error) {
	if parts, ok := addressParts(address); !ok || !f.inScope(parts) {
		return Step{}, fault.New(fault.BadRequest, "nothing can be set before %s: it isn't a node of a scope",
			fault.Quote(address)).
			WithHint("rerun from the node around it")
	}
	delta, err := newPatch(values)
	if err != nil {
		return Step{}, fault.New(fault.BadRequest, "what is to be set before %s: %s", fault.Quote(address), err)
	}
	return Step{Address: address + patchMark, Try: 1, State: Done, Delta: delta.raw, Began: now(), Ended: now()}, nil
}

// inScope reports whether an address is that of a node in a scope: no item, and no branch.
func (f *Flow) inScope(parts []part) bool {
	scope, branches := &f.Scope, map[string]*Node(nil)
	for i, p := range parts {
		node := branches[p.visit]
		if scope != nil {
			node = scope.Nodes[p.name]
		}
		if node == nil || i == len(parts)-1 {
			return node != nil && scope != nil && p.item == ""
		}
		scope, branches = node.Flow, node.Branches
	}
	return false
}

// part is one place in an address: a visit of a node, or an item of a map.
type part struct {
	visit string // "review#2"
	name  string
	item  string // "[3]"; "": none
}

var partPattern = lazyregexp.New(`^(([a-z][a-z0-9_-]{0,39})(?:#[1-9][0-9]{0,4})?)(\[(?:0|[1-9][0-9]{0,5})\])?$`)

func addressParts(address string) ([]part, bool) {
	if len(address) > MaxAddress {
		return nil, false
	}
	var parts []part
	for text := range strings.SplitSeq(address, "/") {
		match := partPattern().FindStringSubmatch(text)
		if match == nil {
			return nil, false
		}
		parts = append(parts, part{visit: match[1], name: match[2], item: match[3]})
	}
	return parts, true
}

// takeover chooses steps of an earlier walk.
type takeover struct {
	ends   map[string]Step            // by address
	failed map[string]bool            // the addresses at or below which something has failed
	items  map[string]map[string]bool // by the address of a map: those of its items
	taken  map[string]bool            // with all that is below
}

func newTakeover(kept []Step) *takeover {
	t := &takeover{
		ends: map[string]Step{}, failed: map[string]bool{}, items: map[string]map[string]bool{},
		taken: map[string]bool{},
	}
	for _, step := range kept {
		if step.Final() {
			t.ends[step.Address] = step
		}
		for at := step.Address; at != ""; at = above(at) {
			if step.Final() && step.State == Failed {
				t.failed[at] = true
			}
			if strings.HasSuffix(at, "]") {
				t.hasItem(above(at), at)
			}
		}
	}
	return t
}

func (t *takeover) hasItem(address, item string) {
	if t.items[address] == nil {
		t.items[address] = map[string]bool{}
	}
	t.items[address][item] = true
}

// above returns the address around one: the map of an item, the node of a scope or of branches.
func above(address string) string {
	if strings.HasSuffix(address, "]") {
		return address[:max(0, strings.LastIndexByte(address, '['))]
	}
	return address[:max(0, strings.LastIndexByte(address, '/'))]
}

// steps are those that were chosen, with the failed tries before them.
func (t *takeover) steps(kept []Step) []Step {
	var out []Step
	for _, step := range kept {
		if _, ended := t.ends[step.Address]; !ended || step.State == Open {
			continue
		}
		for at := step.Address; at != ""; at = above(at) {
			if t.taken[at] {
				out = append(out, step)
				break
			}
		}
	}
	return out
}

// along takes the ends of a scope in the order of its walk, until here says that it is there.
// Else it returns the last address that the walk reaches.
func (t *takeover) along(
	g *Scope, prefix string, here func(address string, node *Node) bool,
) (last string, there bool) {
	visits := map[string]int{}
	for at := g.Start; at != End && at != ""; {
		node, ok := g.Nodes[at]
		if !ok {
			return last, false
		}
		visits[at]++
		last = visitAddress(prefix, at, visits[at])
		if here(last, node) {
			return last, true
		}
		t.taken[last+patchMark] = true
		step, ended := t.ends[last]
		if !ended || step.State == Failed && step.Action == "" {
			return last, false
		}
		t.taken[last] = true
		if at, ok = node.Next.after(step.Action); !ok {
			return last, false
		}
	}
	return last, false
}

func visitAddress(prefix, name string, visit int) string {
	if visit > 1 {
		return prefix + name + "#" + strconv.Itoa(visit)
	}
	return prefix + name
}

// to takes what is before an address in a scope.
func (t *takeover) to(g *Scope, prefix string, parts []part) error {
	var target *Node
	last, there := t.along(g, prefix, func(address string, node *Node) bool {
		target = node
		return address == prefix+parts[0].visit
	})
	if !there {
		return unreached(prefix+parts[0].visit, last)
	}
	return t.into(target, prefix+parts[0].visit, parts)
}

func unreached(address, last string) error {
	err := fault.New(fault.Conflict, "the current flow no longer reaches %s with the earlier run's steps",
		fault.Quote(address))
	if last == "" {
		return err.WithHint("run it anew")
	}
	return err.WithHint("rerun it from %s, or run it anew", last)
}

// into takes what is beside the address within a node.
func (t *takeover) into(node *Node, address string, parts []part) error {
	at, rest := address+parts[0].item, parts[1:]
	if parts[0].item != "" {
		if node.Map == nil {
			return unreached(at, address)
		}
		for item := range t.items[address] {
			t.taken[item] = item != at
		}
	}
	branch, isBranch := (*Node)(nil), false
	if len(rest) > 0 {
		branch, isBranch = node.Branches[rest[0].visit]
	}
	switch {
	case len(rest) == 0:
		return nil
	case isBranch:
		for name := range node.Branches {
			t.taken[at+"/"+name] = name != rest[0].visit
		}
		return t.into(branch, at+"/"+rest[0].visit, rest)
	case node.Flow != nil && (node.Map != nil) == (parts[0].item != ""):
		return t.to(node.Flow, at+"/", rest)
	}
	return unreached(at+"/"+rest[0].visit, address)
}

// mend takes the ends of a scope up to the first that failed or is missing, and what is sound
// in that.
func (t *takeover) mend(g *Scope, prefix string) {
	t.along(g, prefix, func(address string, node *Node) bool {
		if t.sound(address) {
			return false
		}
		t.taken[address+patchMark] = true
		t.within(node, address)
		return true
	})
}

func (t *takeover) sound(address string) bool {
	_, ended := t.ends[address]
	return ended && !t.failed[address]
}

// within takes what is sound in a node that isn't.
func (t *takeover) within(node *Node, address string) {
	switch {
	case node.Map != nil:
		for item := range t.items[address] {
			t.taken[item] = t.sound(item)
			if node.Flow != nil && !t.taken[item] {
				t.mend(node.Flow, item+"/")
			}
		}
	case node.Flow != nil:
		t.mend(node.Flow, address+"/")
	}
	for name, branch := range node.Branches {
		below := address + "/" + name
		t.taken[below] = t.sound(below)
		if !t.taken[below] {
			t.within(branch, below)
		}
	}
}
