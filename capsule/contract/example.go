package contract

import (
	"encoding/json"
	"strings"
)

// exampler makes an example of so many values at most: a schema may hold itself.
type exampler struct{ left int }

func (e *exampler) value(schemas []*node, depth int) any {
	if e.left--; e.left < 0 {
		return nil
	}
	all := allHere(schemas...)
	var types kinds
	for _, n := range all {
		types |= n.types
		for _, known := range [][]any{{n.notes.fallback}, {n.notes.example}, n.notes.choices} {
			if len(known) > 0 && known[0] != nil {
				return known[0]
			}
		}
	}
	least := bounds(all)
	switch {
	case types&kindObject != 0 || types == 0 && depth == fieldDepth:
		return e.object(schemas, depth)
	case types&kindString != 0 || types == 0:
		return exampleText(least)
	case types&(kindInteger|kindNumber) != 0:
		return exampleNumber(least)
	case types&kindBoolean != 0:
		return true
	case types&kindArray != 0:
		return e.array(all, least, depth)
	}
	return nil
}

func (e *exampler) object(schemas []*node, depth int) map[string]any {
	object := map[string]any{}
	children, required := properties(schemas)
	for _, name := range sorted(required) {
		if depth > 1 && !fieldOf(name, true, children[name]).IsFile() {
			object[name] = e.value(children[name], depth-1)
		}
	}
	return object
}

// bounds returns the numbers that schemas set, by keyword.
func bounds(schemas []*node) map[string]json.Number {
	found := map[string]json.Number{}
	for _, n := range schemas {
		for _, key := range []string{
			"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum",
			"exclusiveMaximum", "multipleOf",
		} {
			if bound, ok := n.form[key].(json.Number); ok {
				found[key] = bound
			}
		}
	}
	return found
}

const exampleWord = "text"

func exampleText(least map[string]json.Number) string {
	const most = 1000
	length, _ := least["minLength"].Int64()
	for text := exampleWord; ; text += " " + exampleWord {
		if int64(len(text)) >= min(length, most) {
			return strings.TrimSpace(text)
		}
	}
}

func exampleNumber(least map[string]json.Number) any {
	if bound, ok := least["minimum"]; ok {
		return bound
	}
	if bound, ok := least["exclusiveMinimum"]; ok {
		if whole, err := bound.Int64(); err == nil {
			return whole + 1
		}
	}
	if most, ok := least["maximum"]; ok {
		if value, err := most.Float64(); err == nil && value < 1 {
			return most
		}
	}
	return 1
}

func (e *exampler) array(all []*node, least map[string]json.Number, depth int) []any {
	const most = 10
	list := []any{}
	count, _ := least["minItems"].Int64()
	for range min(count, most) {
		if depth > 1 {
			list = append(list, e.value(itemsOf(all), depth-1))
		}
	}
	return list
}
