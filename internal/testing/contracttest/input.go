package contracttest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// deepest bounds inputs of schemas that hold themselves.
const deepest = 6

// Input returns an input of a schema that stands on its own. Every other one is meant to keep it, and mostly does;
// the others have values here and there of which the schema knows nothing.
func (m *Maker) Input(schema map[string]any) map[string]any {
	m.noise = []float64{0, 0.1}[m.IntN(2)]
	in := inputs{m, schema}
	fields := object{}
	in.fields(fields, schema, deepest)
	return fields
}

// inputs makes values for the parts of a schema.
type inputs struct {
	*Maker
	top object
}

func (m *Maker) noisy() bool { return m.Float64() < m.noise }

// odd is a value that fits by chance.
func (m *Maker) odd() any {
	return []any{
		nil, true, false, "x", json.Number("1.50"), json.Number("-0"),
		[]any{},
		[]any{nil, "", []any{}},
		"", "\r\n",
		" ",
		object{},
		object{"a": json.Number("1e2"), "": nil},
		strings.Repeat("long\n", 50), "\u0000\u001b",
		"2026-02-30",
	}[m.IntN(16)]
}

// resolved follows references.
func (in inputs) resolved(schema object) object {
	for range deepest {
		ref, is := schema["$ref"].(string)
		if !is {
			break
		}
		parts := strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		defs, _ := in.top[parts[0]].(object)
		schema, _ = defs[parts[len(parts)-1]].(object)
	}
	return schema
}

func (in inputs) value(of any, depth int) any {
	schema, _ := of.(object) // of true it knows nothing
	schema = in.resolved(schema)
	if depth == 0 || in.noisy() {
		return in.odd()
	}
	if choices, is := schema["enum"].([]any); is {
		return choices[in.IntN(len(choices))]
	}
	if constant, is := schema["const"]; is {
		return constant
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if several, is := schema[key].([]any); is {
			return in.value(several[in.IntN(len(several))], depth)
		}
	}
	switch in.kind(schema) {
	case "string":
		return in.words(schema)
	case "int", "integer", "float", "number":
		return json.Number(in.pick("10", "0", "5", "-1", "10.0", "1e2", "9007199254740993", "5.50", "-0", "100"))
	case "bool", "boolean":
		return in.IntN(2) == 0
	case "list", "array":
		return in.list(schema, depth)
	case "dict", "object":
		fields := object{}
		in.fields(fields, schema, depth)
		return fields
	case "null":
		return nil
	}
	return in.odd()
}

// kind is one of the types of a schema, or what it looks like.
func (in inputs) kind(schema object) string {
	switch kind := schema["type"].(type) {
	case string:
		return kind
	case []any:
		one, _ := kind[in.IntN(len(kind))].(string)
		return one
	}
	if schema["properties"] != nil || schema["allOf"] != nil {
		return "object"
	}
	return ""
}

// words is a text for a schema.
func (in inputs) words(schema object) string {
	format, _ := schema["format"].(string)
	known := map[string][]string{
		"date": {"2026-12-01", "0000-01-02", "9999-12-31"}, "time": {"14:30:00Z", "23:59:59.5+01:00"},
		"date-time": {"2026-12-01T14:30:00Z", "2026-12-01t14:30:00.25-05:00"}, "uri": {"http://a.example/?q=%20#f"},
		"email": {"a+b@c.example"}, "uuid": {"123e4567-e89b-12d3-a456-426614174000"}, "file_path": {"a.txt", "ü.txt"},
	}
	if texts := known[format]; texts != nil && !in.noisy() {
		return in.pick(texts...)
	}
	return in.pick("a", "a1é", "abc", " a\n b ", "\na1é\n", "two\r\nlines", "a\rb", "é\u2028😀0", "", "a1é\u0000",
		"\t\ufeffé1 ", `"><script>&amp;`, "%22%0D", "null", "1", "{}", "\u0085é", "e\u0301\ufffd")
}

func (in inputs) list(schema object, depth int) []any {
	list := []any{}
	first, _ := schema["prefixItems"].([]any)
	if tuple, is := schema["items"].([]any); is {
		first = tuple
	}
	for _, item := range first {
		list = append(list, in.value(item, depth-1))
	}
	if items, is := schema["items"].(object); is {
		for range in.IntN(4) {
			list = append(list, in.value(items, depth-1))
		}
	}
	return list
}

// fields adds those of a schema's object.
func (in inputs) fields(to, schema object, depth int) {
	schema = in.resolved(schema)
	known, _ := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if slices.Contains(required, any(name)) && !in.noisy() || depth > 1 && in.IntN(3) > 0 {
			to[name] = in.value(known[name], depth-1)
		}
	}
	all, _ := schema["allOf"].([]any)
	for _, one := range all {
		if one, is := one.(object); is {
			in.fields(to, one, depth)
		}
	}
	if in.IntN(3) == 0 && schema["additionalProperties"] != false || in.noisy() {
		of := schema["additionalProperties"]
		if patterns, is := schema["patternProperties"].(object); is {
			of = patterns["^x"]
		}
		to["x beside"] = in.value(of, depth-1)
	}
}
