package sdk_test

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/agent-on-demand/aod/capsule/contract"
)

// row is a schema, a value, and AOD's verdict. The library's own tests judge it once more.
type row struct {
	Schema  json.RawMessage `json:"schema"`
	Value   json.RawMessage `json:"value"`
	Valid   bool            `json:"valid"`
	Refused bool            `json:"refused"` // the schema, by AOD
}

// writeRows writes random schemas and values with AOD's verdicts to a file.
func writeRows(t *testing.T, path string, count int) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("the seed of the schemas is %d", seed)
	m := maker{rand.New(rand.NewPCG(seed, 1))}
	rows := make([]row, count)
	valid := 0
	for i := range rows {
		rows[i] = m.row(t)
		if rows[i].Valid {
			valid++
		}
	}
	if valid < count/5 || valid > count*4/5 {
		t.Errorf("%d of %d values keep their schemas: the verdicts say little", valid, count)
	}
	raw, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

// maker makes schemas and values by chance.
type maker struct{ *rand.Rand }

func (m maker) row(t *testing.T) row {
	t.Helper()
	schema := map[string]any{"type": "object", "properties": map[string]any{"v": m.schema(3)}, "definitions": map[string]any{"d": m.schema(1)}}
	if drafts := []string{"", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"}; m.IntN(2) == 0 {
		schema["$schema"] = drafts[1+m.IntN(2)]
	}
	raw, value := encoded(t, schema), encoded(t, map[string]any{"v": m.value(3)})
	compiled, _ := contract.Compile(raw)
	if compiled == nil {
		return row{Schema: raw, Value: value, Refused: true}
	}
	payload, err := contract.Decode(value, 0)
	if err != nil {
		t.Fatal(err)
	}
	return row{Schema: raw, Value: value, Valid: len(compiled.Validate(payload)) == 0}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func pick[T any](m maker, from ...T) T { return from[m.IntN(len(from))] }

// value is one beside which others lie that look like it.
func (m maker) value(depth int) any {
	if kind := m.IntN(8); depth > 0 && kind == 0 {
		list := make([]any, m.IntN(4))
		for i := range list {
			list[i] = m.value(depth - 1)
		}
		return list
	} else if depth > 0 && kind < 3 {
		object := map[string]any{}
		for range m.IntN(4) {
			object[pick(m, "a", "b", "ä", "a1", "x y")] = m.value(depth - 1)
		}
		return object
	}
	return pick[any](
		m, nil, true, false, 0, 1, -1, 2, json.Number("1.0"), json.Number("1e2"), 0.1, 0.3, 2.5, json.Number("9007199254740993"),
		"", "a", "A", "é", "Zoë", "a\u00a0b", "a b", "ab\n", "1", "٣", "a_1", "😀", "12", "2024-02-29", "2024-02-30", "15:04:05Z", "P1DT2H", "P1Y2D",
		"2024-02-29t15:04:05z", "2024-02-29T15:04:60Z", "name@example.com", "a.com", "-a.com", "1.2.3.4", "::1", "urn:a",
		"https://a/ b", "/a~1", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b810", "\v", "k", "K",
	)
}

func (m maker) schema(depth int) any {
	if m.IntN(12) == 0 {
		return pick[any](m, true, false)
	}
	s := map[string]any{}
	for range 1 + m.IntN(2) {
		m.keyword(s, depth)
	}
	return s
}

func (m maker) keyword(s map[string]any, depth int) {
	sub := func() any { return m.schema(depth - 1) }
	switch kind := m.IntN(24); {
	case kind < 4:
		s["type"] = pick[any](m, "string", "integer", "number", "boolean", "object", "array", "null", "int", []any{"string", "float"})
	case kind < 6:
		s["enum"] = []any{m.value(1)}
	case kind == 6:
		s["const"] = m.value(1)
	case kind < 9:
		s["pattern"] = pick(
			m, `^\S+$`, `^\w+$`, `\d`, `^[^\W\d]+$`, `^(?<n>a)`, `a\z`, `\Qa b\E`, `^[\s\S]$`, `\u00e9`, `^[\u0041-\u00eb]+$`, `^.$`, `\bb`, `(?i)^k$`,
			`^\p{L}+$`, `[[:alpha:]]`, `^(?!a)\w`, `\x{e9}`, `^\ud83d\ude00$`, `[]a]`, `[\]\-a[]`, `a{,2}`, `$^|1`, `\D`, `(a|b)+$`, `^\cK$`,
		)
	case kind < 11:
		s["format"] = pick(m, "date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri", "uuid",
			"regex", "json-pointer", "idn-hostname", "colour")
	case kind == 11:
		s[pick(m, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")] = pick[any](m, 0, 1, 0.3, -1)
	case kind == 12:
		s["multipleOf"] = pick[any](m, 1, 0.1, 2, 0.01)
	case kind == 13:
		s[pick(m, "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")] = pick[any](m, 1, 2, json.Number("1.0"))
	case kind == 14:
		s["uniqueItems"] = true
	case kind == 15:
		s["required"] = []any{pick(m, "a", "b")}
	case depth == 0:
		s["$ref"] = "#/definitions/d"
		delete(s, "enum")
	case kind < 18:
		s["properties"] = map[string]any{"a": sub(), "b": sub()}
		s[pick(m, "additionalProperties", "propertyNames", "title")] = pick[any](m, false, map[string]any{"pattern": "^a"})
		delete(s, "title")
	case kind == 18:
		s["patternProperties"] = map[string]any{pick(m, "^a", `\u00e4`, `^\w$`): sub()}
	case kind == 19:
		s[pick(m, "items", "contains", "prefixItems", "dependentSchemas", "dependencies")] = sub()
		for _, key := range []string{"dependentSchemas", "dependencies"} {
			if s[key] != nil {
				s[key] = map[string]any{"a": s[key]}
			}
		}
		if s["prefixItems"] != nil {
			s["prefixItems"] = []any{s["prefixItems"], sub()}
		}
	case kind == 20:
		s["if"], s["then"], s["else"] = sub(), sub(), sub()
	case kind == 21:
		s["not"] = sub()
	default:
		s[pick(m, "anyOf", "oneOf", "allOf")] = []any{sub(), sub()}
	}
}

// rowsFor writes the rows into a directory that a container may read.
func rowsFor(t *testing.T) string {
	t.Helper()
	count, err := strconv.Atoi(cmp.Or(os.Getenv("AOD_SCHEMAS"), "1000"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeRows(t, filepath.Join(dir, "rows.json"), count)
	return dir
}
