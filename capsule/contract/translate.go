package contract

import (
	"encoding/json"
	"fmt"
)

// translator writes the form of a schema whose keywords were read in draft-07's words.
type translator struct {
	n      *node
	draft  draft
	report *report
}

func (t translator) translate() {
	t.prefix()
	t.containing()
	t.dependent()
}

// prefix makes "items" of "prefixItems", and "additionalItems" of the "items" beside it.
func (t translator) prefix() {
	tuple, prefixed := t.n.many["prefixItems"]
	delete(t.n.many, "prefixItems")
	delete(t.n.form, "prefixItems")
	_, listed := t.n.many["items"]
	_, more := t.n.one["additionalItems"]
	if modern := prefixed || t.draft == draft2020; modern && listed {
		t.report.fail(t.n.pointer+"/items", `write the list as "prefixItems" and what follows it as "items"`,
			`since draft 2020-12 "items" is one schema, not a list`)
	} else if modern && more {
		t.report.fail(t.n.pointer+"/additionalItems", `write it as "items" beside "prefixItems"`,
			`since draft 2020-12 "additionalItems" is ignored`)
	}
	if len(tuple) == 0 || listed {
		return
	}
	if rest := t.n.one["items"]; rest != nil {
		t.n.one["additionalItems"], t.n.form["additionalItems"] = rest, rest.slot()
		delete(t.n.one, "items")
	}
	t.n.many["items"], t.n.form["items"] = tuple, slots(tuple)
}

// containing takes numbers of "contains" that ask for nothing else than one at least, or
// for nothing. Draft-07 can't count.
func (t translator) containing() {
	least, hasLeast := t.n.form["minContains"].(json.Number)
	most, hasMost := t.n.form["maxContains"].(json.Number)
	items, bounded := t.n.form["maxItems"].(json.Number)
	delete(t.n.form, "minContains")
	delete(t.n.form, "maxContains")
	if t.n.one["contains"] == nil {
		return
	}
	if hasMost && (!bounded || rational(most).Cmp(rational(items)) < 0) {
		t.report.fail(t.n.pointer+"/maxContains", `write "maxItems", or leave it to the program`,
			"draft-07, to which contracts are held, can't count what a list contains")
	}
	if hasLeast && least == "0" {
		delete(t.n.one, "contains")
		delete(t.n.form, "contains")
	} else if hasLeast && least != "1" {
		t.report.fail(t.n.pointer+"/minContains", `write "contains", which asks for one at least, or "minItems"`,
			"draft-07, to which contracts are held, can't count what a list contains")
	}
}

// dependent writes the dependencies of all keywords as one. Draft-07 has names or a schema
// for a field; what asks for both stands under "allOf".
func (t translator) dependent() {
	form := map[string]any{}
	for _, key := range sorted(t.n.dependentKeys) {
		form[key] = anys(t.n.dependentKeys[key])
	}
	for _, key := range sorted(t.n.named["dependencies"]) {
		if names, taken := form[key]; taken {
			t.n.also = append(t.n.also, map[string]any{"dependencies": map[string]any{key: names}})
		}
		form[key] = t.n.named["dependencies"][key].slot()
	}
	if len(form) > 0 {
		t.n.form["dependencies"] = form
	}
}

// pairs looks at keywords that mean something together.
func (t translator) pairs() {
	for _, what := range []string{"Length", "Items", "Properties"} {
		t.order("min"+what, "max"+what)
	}
	t.order("minimum", "maximum")
	for plain, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		is, ok := t.n.form[exclusive].(bool)
		if !ok {
			continue
		}
		delete(t.n.form, exclusive)
		if value, given := t.n.form[plain]; is && given {
			delete(t.n.form, plain)
			t.n.form[exclusive] = value
		}
	}
}

func (t translator) order(low, high string) {
	a, hasLow := t.n.form[low].(json.Number)
	b, hasHigh := t.n.form[high].(json.Number)
	if hasLow && hasHigh && rational(a).Cmp(rational(b)) > 0 {
		t.report.fail(t.n.pointer+"/"+low, fmt.Sprintf("swap them, or lower %q", low),
			"%q is greater than %q, so that nothing would be allowed", low, high)
	}
}
