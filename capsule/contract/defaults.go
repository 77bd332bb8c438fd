package contract

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// missing begins the message about a field that isn't there.
const missing = "required field"

// checkDefaults warns of defaults that their own schemas refuse: a program that gets one is given what no caller may
// give it. Fields that a default lacks may have defaults of their own.
func (c *compiler) checkDefaults() {
	all, values := newNode(len(c.nodes), ""), map[string]any{}
	of, slots := map[string]*node{}, map[string]any{}
	for _, n := range c.nodes {
		if n.notes.fallback != nil {
			name := strconv.Itoa(n.id)
			values[name], of[name], slots[name] = n.notes.fallback, n, n.slot()
		}
	}
	all.named["properties"], all.form["properties"] = of, slots
	p, err := NewPayload(values)
	if len(values) == 0 || err != nil {
		return
	}
	if steps, ok := walk(all, p.value(), nil); !ok || steps > heavySteps {
		return // a check that costs too much is none
	}
	compiled, err := engineFor(documentOf(all))
	if err != nil {
		return
	}
	warnings := map[*node]string{}
	for _, f := range (&Schema{root: all, compiled: compiled}).validate(p) {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
		if n := of[name]; n != nil && !strings.HasPrefix(f.Message, missing) {
			warnings[n] = cmp.Or(warnings[n], f.Message)
		}
	}
	byPlace := func(a, b *node) int { return cmp.Compare(a.pointer, b.pointer) }
	for _, n := range slices.SortedFunc(maps.Keys(warnings), byPlace) {
		c.report.warn(n.pointer+"/default", "write a default that keeps the schema, or leave it out",
			"the default breaks its own schema: %s", warnings[n])
	}
}
