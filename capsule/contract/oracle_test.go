package contract

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// oracle judges by the letter of draft 2020-12, and knows nothing of the engine or of any
// translation. It has the keywords that randomSchema writes.
type oracle struct{ defs map[string]any }

func (o oracle) valid(schema, v any) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema.(bool)
	}
	return o.inPlace(s, v) && o.value(s, v) && o.object(s, v) && o.list(s, v)
}

func (o oracle) inPlace(s map[string]any, v any) bool {
	if ref, ok := s["$ref"].(string); ok && !o.valid(o.defs[ref[len("#/$defs/"):]], v) {
		return false
	}
	for _, e := range listAt(s, "allOf") {
		if !o.valid(e, v) {
			return false
		}
	}
	if any := listAt(s, "anyOf"); any != nil && o.count(any, v) == 0 {
		return false
	}
	if one := listAt(s, "oneOf"); one != nil && o.count(one, v) != 1 {
		return false
	}
	if not, ok := s["not"]; ok && o.valid(not, v) {
		return false
	}
	condition, ok := s["if"]
	if !ok {
		return true
	}
	branch, ok := s["else"]
	if o.valid(condition, v) {
		branch, ok = s["then"]
	}
	return !ok || o.valid(branch, v)
}

// count returns how many of the schemas hold.
func (o oracle) count(schemas []any, v any) int {
	n := 0
	for _, s := range schemas {
		if o.valid(s, v) {
			n++
		}
	}
	return n
}

func (o oracle) value(s map[string]any, v any) bool {
	if name, ok := s["type"].(string); ok && typeOf(v) != name && (name != "number" || typeOf(v) != "integer") {
		return false
	}
	if want, ok := s["const"]; ok && !reflect.DeepEqual(want, v) {
		return false
	}
	if number, ok := v.(json.Number); ok {
		f, _ := number.Float64()
		low, hasLow := numberAt(s, "minimum")
		high, hasHigh := numberAt(s, "exclusiveMaximum")
		return (!hasLow || f >= low) && (!hasHigh || f < high)
	}
	if text, ok := v.(string); ok {
		low, hasLow := numberAt(s, "minLength")
		return !hasLow || utf8.RuneCountInString(text) >= int(low)
	}
	return true
}

func (o oracle) object(s map[string]any, v any) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return true
	}
	properties, _ := s["properties"].(map[string]any)
	for name, e := range object {
		schema, described := properties[name]
		if rest, ok := s["additionalProperties"]; ok && !described {
			schema, described = rest, true
		}
		if described && !o.valid(schema, e) {
			return false
		}
		if names, ok := s["propertyNames"]; ok && !o.valid(names, name) {
			return false
		}
	}
	return o.present(s, object)
}

func (o oracle) present(s, object map[string]any) bool {
	for _, name := range listAt(s, "required") {
		if _, ok := object[name.(string)]; !ok {
			return false
		}
	}
	schemas, _ := s["dependentSchemas"].(map[string]any)
	for name, schema := range schemas {
		if _, ok := object[name]; ok && !o.valid(schema, object) {
			return false
		}
	}
	names, _ := s["dependentRequired"].(map[string]any)
	for name, others := range names {
		if _, ok := object[name]; ok && !o.present(map[string]any{"required": others}, object) {
			return false
		}
	}
	return true
}

func (o oracle) list(s map[string]any, v any) bool {
	list, ok := v.([]any)
	if !ok {
		return true
	}
	prefix := listAt(s, "prefixItems")
	found := 0
	for i, e := range list {
		schema, described := s["items"]
		if i < len(prefix) {
			schema, described = prefix[i], true
		}
		if described && !o.valid(schema, e) {
			return false
		}
		if contains, ok := s["contains"]; ok && o.valid(contains, e) {
			found++
		}
	}
	least, given := numberAt(s, "minContains")
	if _, ok := s["contains"]; ok && found == 0 && (!given || least > 0) {
		return false
	}
	most, bounded := numberAt(s, "maxItems")
	return !bounded || len(list) <= int(most)
}

func listAt(s map[string]any, key string) []any {
	list, _ := s[key].([]any)
	return list
}

func numberAt(s map[string]any, key string) (float64, bool) {
	number, ok := s[key].(json.Number)
	f, _ := number.Float64()
	return f, ok
}

func typeOf(v any) string {
	if number, ok := v.(json.Number); ok {
		if _, err := number.Int64(); err == nil {
			return "integer"
		}
		return "number"
	}
	return map[reflect.Kind]string{
		reflect.Invalid: "null", reflect.Bool: "boolean", reflect.String: "string", reflect.Slice: "array", reflect.Map: "object",
	}[reflect.ValueOf(v).Kind()]
}

// maker writes schemas and values at random, small enough to meet each other often.
type maker struct{ *rand.Rand }

func (m maker) pick(words ...string) string { return words[m.IntN(len(words))] }

func (m maker) schemas(n, depth int) string {
	list := ""
	for i := range n {
		if i > 0 {
			list += ","
		}
		list += m.schema(depth)
	}
	return "[" + list + "]"
}

func (m maker) schema(depth int) string {
	if depth == 0 || m.IntN(6) == 0 {
		return m.pick(`true`, `{}`, `{"type":"integer"}`, `{"type":"string"}`, `{"type":"null"}`, `{"$ref":"#/$defs/a"}`, `{"const":1}`, `{"minimum":1}`, `false`)
	}
	fields := map[string]string{}
	for range 1 + m.IntN(3) {
		key := m.pick("$ref", "allOf", "anyOf", "oneOf", "not", "if", "type", "minimum", "exclusiveMaximum", "minLength", "properties", "additionalProperties",
			"propertyNames", "required", "dependentSchemas", "dependentRequired", "prefixItems", "items", "contains", "maxItems", "const")
		fields[key] = m.keyword(key, depth-1)
		if key == "if" {
			fields["then"], fields["else"] = m.schema(depth-1), m.schema(depth-1)
		}
		if key == "contains" && m.IntN(2) == 0 {
			fields["minContains"] = m.pick("0", "1")
		}
	}
	text := ""
	for _, key := range sorted(fields) {
		text += fmt.Sprintf(",%q:%s", key, fields[key])
	}
	return "{" + text[1:] + "}"
}

func (m maker) keyword(key string, depth int) string {
	switch key {
	case "$ref":
		return m.pick(`"#/$defs/a"`, `"#/$defs/b"`)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return m.schemas(1+m.IntN(2), depth)
	case "type":
		return m.pick(`"null"`, `"boolean"`, `"integer"`, `"number"`, `"string"`, `"array"`, `"object"`)
	case "minimum", "exclusiveMaximum", "minLength", "maxItems":
		return m.pick("0", "1", "2")
	case "properties", "dependentSchemas":
		return fmt.Sprintf(`{"a":%s,"b":%s}`, m.schema(depth), m.schema(depth))
	case "required":
		return m.pick(`["a"]`, `["a","b"]`, `[]`)
	case "dependentRequired":
		return m.pick(`{"a":["b"]}`, `{"b":["a","c"]}`)
	case "const":
		return m.value(1)
	}
	return m.schema(depth)
}

func (m maker) value(depth int) string {
	if depth == 0 || m.IntN(3) == 0 {
		return m.pick("null", "true", "0", "1", "2.5", `""`, `"a"`, `"long"`, "[]", "{}")
	}
	if m.IntN(2) == 0 {
		return "[" + m.value(depth-1) + "," + m.value(depth-1) + "]"
	}
	return `{"a":` + m.value(depth-1) + m.pick("", `,"b":`+m.value(depth-1), `,"c":1`) + "}"
}

func TestTheEngineJudgesAsTheDraftHasIt(t *testing.T) {
	refused, held, broken := 0, 0, 0
	for seed := range uint64(3000) {
		m := maker{rand.New(rand.NewPCG(seed, 11))}
		raw := fmt.Sprintf(`{%s"$defs":{"a":{"type":"integer","minimum":1},"b":%s},"properties":{"v":%s}}`, schema2020, m.schema(1), m.schema(3))
		s, found := Compile([]byte(raw))
		if s == nil { // such as one that leads back to itself
			refused++
			continue
		}
		document, err := strictjson.Decode([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		defs := document.(map[string]any)["$defs"].(map[string]any)
		for range 10 {
			p := payload(t, `{"v":`+m.value(3)+`}`)
			want := oracle{defs}.valid(document, p.value())
			got := s.Validate(p)
			if (len(got) == 0) != want {
				t.Fatalf("seed %d: %s of %s: %v, findings %v, warnings %v", seed, p.JSON(), raw, want, got, found)
			}
			if want {
				held++
			} else {
				broken++
			}
		}
	}
	if refused > 600 || held < 5000 || broken < 5000 {
		t.Errorf("%d schemas were refused, %d payloads hold, %d don't: that tells little", refused, held, broken)
	}
}
