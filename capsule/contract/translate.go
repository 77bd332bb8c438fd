package contract

import (
	"encoding/json"
)

// prefix makes "items" of "prefixItems", and "additionalItems" of the "items" beside it.
func (c *compiler) prefix(n *node) {
	tuple, prefixed := n.many["prefixItems"]
	delete(n.many, "prefixItems")
	delete(n.form, "prefixItems")
	_, listed := n.many["items"]
	_, more := n.one["additionalItems"]
	if modern := prefixed || c.draftAt(n.pointer) == draft2020; modern && listed {
		c.fail(n.pointer+"/items", `write the list as "prefixItems" and what follows it as "items"`,
			`since draft 2020-12 "items" is one schema, not a list`)
	} else if modern && more {
		c.fail(n.pointer+"/additionalItems", `write it as "items" beside "prefixItems"`,
			`since draft 2020-12 "additionalItems" is ignored`)
	}
	if len(tuple) == 0 || listed {
		return
	}
	if rest := n.one["items"]; rest != nil {
		n.one["additionalItems"], n.form["additionalItems"] = rest, rest.slot()
		delete(n.one, "items")
	}
	n.many["items"], n.form["items"] = tuple, slots(tuple)
}

// containing takes numbers of "contains" that ask for nothing else than one at least, or
// for nothing. Draft-07 can't count.
func (c *compiler) containing(n *node) {
	least, hasLeast := n.form["minContains"].(json.Number)
	most, hasMost := n.form["maxContains"].(json.Number)
	items, bounded := n.form["maxItems"].(json.Number)
	delete(n.form, "minContains")
	delete(n.form, "maxContains")
	if n.one["contains"] == nil {
		return
	}
	if hasMost && (!bounded || rational(most).Cmp(rational(items)) < 0) {
		c.fail(n.pointer+"/maxContains", `write "maxItems", or leave it to the program`,
			"draft-07, to which contracts are held, can't count what a list contains")
	}
	if hasLeast && least == "0" {
		delete(n.one, "contains")
		delete(n.form, "contains")
	} else if hasLeast && least != "1" {
		c.fail(n.pointer+"/minContains", `write "contains", which asks for one at least, or "minItems"`,
			"draft-07, to which contracts are held, can't count what a list contains")
	}
}

// dependent writes the dependencies of all keywords as one. Draft-07 has names or a schema
// for a field; what asks for both stands under "allOf".
func (c *compiler) dependent(n *node) {
	form := map[string]any{}
	for _, key := range sorted(n.dependentKeys) {
		form[key] = anys(n.dependentKeys[key])
	}
	for _, key := range sorted(n.named["dependencies"]) {
		if names, taken := form[key]; taken {
			n.also = append(n.also, map[string]any{"dependencies": map[string]any{key: names}})
		}
		form[key] = n.named["dependencies"][key].slot()
	}
	if len(form) > 0 {
		n.form["dependencies"] = form
	}
}
