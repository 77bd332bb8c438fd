// Package contracttest makes contracts at random, and inputs that keep them or don't, for tests of what reads
// both.
//
// One seed gives the same contract and the same inputs each time: a test says it where it fails.
package contracttest

import (
	"encoding/json"
	"math/rand/v2"
)

// Maker makes a contract and its inputs. It isn't safe for concurrent use.
type Maker struct {
	*rand.Rand

	Files bool // fields may name files

	newer bool    // draft 2020-12, not 7
	noise float64 // how often a value is none that its schema asks for
}

// New returns the maker of a seed.
func New(seed uint64) *Maker {
	m := &Maker{Rand: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // the same values each time
	m.newer = m.IntN(2) == 0
	return m
}

// object is a schema, or another object of JSON.
type object = map[string]any

// Contract returns the schema of an input: an object with up to six fields. What is in them may refer to a schema
// that holds itself.
func (m *Maker) Contract() map[string]any {
	top := m.object(3)
	draft, defs := "http://json-schema.org/draft-07/schema#", "definitions"
	if m.newer {
		draft, defs = "https://json-schema.org/draft/2020-12/schema", "$defs"
	}
	top["$schema"] = draft
	node := object{"type": "object", "required": []any{"name"}, "properties": object{
		"name": object{"type": "string"}, "next": m.node(), "all": object{"type": "array", "items": m.node()},
	}}
	top[defs] = object{"node": node, "few": m.list(0)}
	return top
}

func (m *Maker) node() object { return m.ref("node") }

func (m *Maker) ref(to string) object {
	if m.newer {
		return object{"$ref": "#/$defs/" + to}
	}
	return object{"$ref": "#/definitions/" + to}
}

// names are those of fields: what browsers, headers, pointers, HTML and scripts have meanings for.
var names = []string{
	"a", "b", "c/~", "0", "", " é", "__proto__", "constructor", "a%22b", "#", "two words", `q"uote`, `back\slash`,
	`end\`, `a\/b`, "line\nbreak", "cr\r\nlf", "tab\t", "nul\x00", "\x1b[0m", "%", "%0D%0A", "key", "from", "mode",
	"/", "~1", "🦆", "<b>&amp;", "x.y[0]", "a;b=\"c\"", "\ufeff", "\u0085", "длинное имя", "file", "files",
}

// schema returns a schema so many objects and lists deep.
func (m *Maker) schema(depth int) object {
	simple := []func() object{
		m.text, m.text, m.number, m.number, m.format, m.choices, m.constants,
		func() object { return object{"type": "boolean"} },
		func() object { return object{"type": []any{"null", m.pick("string", "integer", "boolean")}} },
		func() object { return object{"type": []any{"integer", "string"}} },
		func() object { return object{} },
		func() object { return m.ref(m.pick("node", "few")) },
		func() object { return object{"not": object{"type": "string"}} },
	}
	if depth <= 0 {
		return simple[m.IntN(len(simple)-2)]() // no references: a schema that is one to itself says nothing
	}
	nested := append(simple, //nolint:gocritic // the simple ones are no more needed
		func() object { return m.list(depth - 1) },
		func() object { return m.list(depth - 1) },
		func() object { return m.tuple(depth - 1) },
		func() object { return m.object(depth - 1) },
		func() object { return m.object(depth - 1) },
		func() object { return m.several(depth - 1) },
		func() object { return object{"anyOf": []any{m.schema(depth - 1), object{"type": "null"}}} },
		func() object { return object{"type": "object", "additionalProperties": m.schema(depth - 1)} },
	)
	return nested[m.IntN(len(nested))]()
}

func (m *Maker) pick(words ...string) string { return words[m.IntN(len(words))] }

func (m *Maker) text() object {
	s := object{"type": "string"}
	switch m.IntN(5) {
	case 0:
		s["maxLength"] = json.Number(m.pick("3", "300"))
	case 1:
		s["minLength"] = json.Number(m.pick("1", "2"))
	case 2:
		s["pattern"] = m.pick("^a", "[0-9]", "é")
	case 3:
		s["default"] = "x"
	}
	return s
}

func (m *Maker) number() object {
	s := object{"type": m.pick("integer", "number")}
	switch m.IntN(5) {
	case 0:
		s["minimum"] = json.Number(m.pick("0", "-3.0", "1e1"))
	case 1:
		s["maximum"] = json.Number(m.pick("100", "9007199254740993"))
	case 2:
		s["exclusiveMinimum"] = json.Number("-3")
	case 3:
		s["multipleOf"] = json.Number(m.pick("5", "0.5"))
	}
	return s
}

func (m *Maker) format() object {
	if m.Files && m.IntN(3) == 0 {
		return object{"type": []any{"string", "null"}[:1+m.IntN(2)], "format": "file_path"}
	}
	return object{"type": "string", "format": m.pick("date", "time", "date-time", "uri", "email", "uuid", "unheard-of")}
}

func (m *Maker) choices() object {
	s := object{"enum": []any{"a", json.Number("1.0"), nil, "é\"<", "", "two\nlines", true, object{"b": nil}}}
	if m.IntN(2) == 0 {
		s = object{"type": "string", "enum": []any{"small", "large"}, "default": "small"}
	}
	return s
}

func (m *Maker) constants() object {
	if m.IntN(2) == 0 {
		return object{"const": m.pick("a", "one ", "\t")}
	}
	return object{"oneOf": []any{object{"const": json.Number("1"), "title": "The one"}, object{"const": "b"}}}
}

func (m *Maker) list(depth int) object {
	items := m.schema(depth)
	if m.Files && m.IntN(4) == 0 {
		items = object{"type": "string", "format": "file_path"}
	}
	s := object{"type": "array", "items": items}
	switch m.IntN(4) {
	case 0:
		s["maxItems"] = json.Number("2")
	case 1:
		s["minItems"] = json.Number("1")
	case 2:
		s["uniqueItems"] = true
	}
	return s
}

func (m *Maker) tuple(depth int) object {
	key := "items"
	if m.newer {
		key = "prefixItems"
	}
	return object{"type": "array", key: []any{m.schema(depth), m.schema(depth)}}
}

// several is an object with alternatives, or with more to hold.
func (m *Maker) several(depth int) object {
	return object{m.pick("anyOf", "oneOf", "allOf"): []any{m.object(depth), m.object(depth)}}
}

func (m *Maker) object(depth int) object {
	fields, required := object{}, []any{}
	for range m.IntN(7) {
		name := m.pick(names...)
		if _, taken := fields[name]; !taken && m.IntN(3) == 0 {
			required = append(required, name)
		}
		fields[name] = m.schema(depth)
	}
	s := object{"type": "object", "properties": fields, "required": required}
	switch m.IntN(5) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = m.schema(0)
	case 2:
		s["patternProperties"] = object{"^x": m.schema(0)}
	}
	return s
}
