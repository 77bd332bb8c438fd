package contract

import "strconv"

// walker goes through a payload and a contract together, along every part of the
// contract that applies to a value or might. It does so within a budget of steps
// that follows what gojsonschema would spend on the same pair, in time and in what
// its errors keep; gojsonschema itself can't be stopped.
type walker struct {
	visit func(n *node, v any, at *place)
	steps int
	over  bool
}

// walk reports whether the whole way was within the budget.
func walk(root *node, v any, visit func(n *node, v any, at *place)) (steps int, ok bool) {
	w := &walker{visit: visit}
	w.value(root, v, nil)
	return w.steps, !w.over
}

func (w *walker) spend(steps int) bool {
	w.steps += steps
	w.over = w.over || w.steps > maxSteps
	return !w.over
}

func (w *walker) value(n *node, v any, at *place) {
	cost := 1 + n.quoted/256
	if at != nil {
		cost += at.bytes / 128
	}
	if !w.spend(cost) {
		return
	}
	if w.visit != nil {
		w.visit(n, v, at)
	}
	if n.always != nil || !n.types.allows(kindOf(v)) {
		return
	}
	if n.compares && !w.spend(weight(v)) {
		return
	}
	w.inPlace(n, v, at)
	switch v := v.(type) {
	case string:
		w.spend(n.regexpOps * (1 + len(v)) / 512)
		if n.perStep > 0 {
			w.spend(len(v) / n.perStep)
		}
	case []any:
		w.array(n, v, at)
	case map[string]any:
		w.object(n, v, at)
	}
}

// weight is the cost of writing a value out.
func weight(v any) int {
	total := 1
	switch v := v.(type) {
	case string:
		total += len(v) / 256
	case []any:
		for _, e := range v {
			total += weight(e)
		}
	case map[string]any:
		for k, e := range v {
			total += len(k)/256 + weight(e)
		}
	}
	return total
}

func (w *walker) inPlace(n *node, v any, at *place) {
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, child := range n.many[key] {
			w.value(child, v, at)
		}
	}
	for _, key := range []string{"$ref", "if", "then", "else"} {
		if child := n.one[key]; child != nil {
			w.value(child, v, at)
		}
	}
	if not := n.one["not"]; not != nil {
		w.hidden(not, v, at)
	}
}

// hidden spends what a schema costs but shows nothing of it to the visitor: what
// stands under "not" or in names is not what the value is.
func (w *walker) hidden(n *node, v any, at *place) {
	visit := w.visit
	w.visit = nil
	w.value(n, v, at)
	w.visit = visit
}

func (w *walker) array(n *node, list []any, at *place) {
	for i, e := range list {
		if w.over {
			return
		}
		here := at.child(strconv.Itoa(i))
		if child := n.item(i); child != nil {
			w.value(child, e, here)
		}
		if contains := n.one["contains"]; contains != nil {
			w.value(contains, e, here)
		}
	}
}

func (w *walker) object(n *node, object map[string]any, at *place) {
	// Each required name may be an error; each field is compared with each property.
	if !w.spend(len(n.required) + len(object)*len(n.named["properties"])/64) {
		return
	}
	for _, key := range sorted(object) {
		if w.over {
			return
		}
		w.field(n, key, object[key], at.child(key))
		if names := n.one["propertyNames"]; names != nil {
			w.hidden(names, key, at)
		}
		w.spend(len(n.dependentKeys[key]))
		if dependency := n.named["dependencies"][key]; dependency != nil {
			w.value(dependency, object, at)
		}
	}
}

func (w *walker) field(n *node, key string, v any, at *place) {
	child, described := n.named["properties"][key]
	if described {
		w.value(child, v, at)
	}
	for _, p := range n.patterns {
		// gojsonschema compiles the expression anew for each name.
		if !w.spend(1 + p.ops/4 + p.ops*len(key)/512) {
			return
		}
		if p.re.MatchString(key) {
			described = true
			w.value(p.schema, v, at)
		}
	}
	if rest := n.one["additionalProperties"]; !described && rest != nil {
		w.value(rest, v, at)
	}
}

// place is where a walk stands in a payload; nil is the root.
type place struct {
	parent *place
	key    string
	bytes  int // of the path so far
}

func (p *place) child(key string) *place {
	bytes := len(key) + 1
	if p != nil {
		bytes += p.bytes
	}
	return &place{parent: p, key: key, bytes: bytes}
}

func (p *place) path() []string {
	if p == nil {
		return nil
	}
	return append(p.parent.path(), p.key)
}
