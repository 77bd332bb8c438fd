package form_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func properties(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"f%d":{"type":"int"}`, i)
	}
	return strings.Join(list, ",")
}

func TestWhatIsPostedIsBounded(t *testing.T) {
	t.Parallel()
	wide := compiled(t, `{"properties":{"l":{"type":"list","items":{"properties":{`+properties(450)+`}}}}}`).Form()
	rows, blank := map[string][]string{}, map[string][]string{}
	for i := range 9000 {
		rows[fmt.Sprintf("/l/%d/f%d", i%1000, i%450)] = []string{"1"}
		blank[fmt.Sprintf("/l/%d/f%d", i%1000, i%450)] = []string{""}
	}
	strange, deep := map[string][]string{}, strings.Repeat("/l/0", 8)+"/x"
	for i := range 10_000 {
		strange[fmt.Sprintf("/x%d", i)] = []string{"1"}
	}
	for name, c := range map[string]struct {
		p    form.Posted
		want []string // the first findings
		all  int
	}{
		"many values":             {form.Posted{Values: map[string][]string{"/l": make([]string, 10_001)}}, []string{"|the form has more than 10000 values"}, 1},
		"many files":              {form.Posted{Files: map[string][]string{"/l": make([]string, 10_001)}}, []string{"|the form has more than 10000 values"}, 1},
		"many values of the page": {form.Posted{Values: map[string][]string{"x": make([]string, 10_001)}}, nil, 0},
		"rows of many fields":     {form.Posted{Values: rows}, []string{"/l|has more items than a form can hold"}, 1},
		"rows that are empty":     {form.Posted{Values: blank}, []string{"/l|has more items than a form can hold"}, 1},
		"names that are unknown":  {form.Posted{Values: strange}, []string{"/x0|the form doesn't take this value here"}, 20},
		"names that are deep":     {form.Posted{Values: map[string][]string{strings.Repeat("/", 100_000): {"x"}, deep: {"x"}}}, []string{deep + "|the form doesn't take this value here"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			control, input, found := form.Read(wide, c.p)
			count := 0
			for range control.All() {
				count++
			}
			if took := time.Since(start); took > 10*time.Second || count > 5000 || !json.Valid(input) || len(found) != c.all {
				t.Errorf("%d controls and %d findings after %v: %.100s", count, len(found), took, input)
			}
			if diff := cmp.Diff(c.want, shortly(found[:min(len(found), 1)])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// maker makes schemas, and values that mostly fit.
type maker struct{ *rand.Rand }

func (m maker) schema(depth int) map[string]any {
	kinds := []func() map[string]any{
		func() map[string]any { return map[string]any{"type": "string"} },
		func() map[string]any { return map[string]any{"type": m.pick("string", "int", "float", "bool", "null")} },
		func() map[string]any { return map[string]any{"type": []any{"null", m.pick("string", "int", "bool")}} },
		func() map[string]any { return map[string]any{"enum": []any{"a", json.Number("1.0"), nil, "é\"<"}} },
		func() map[string]any {
			return map[string]any{"type": "string", "format": m.pick("date", "time", "file_path", "uri")}
		},
		func() map[string]any { return map[string]any{} },
		func() map[string]any { return map[string]any{"type": "list", "items": m.schema(depth - 1)} },
		func() map[string]any { return m.object(depth - 1) },
		func() map[string]any {
			return map[string]any{"anyOf": []any{m.schema(depth - 1), map[string]any{"type": "null"}}}
		},
	}
	if depth == 0 {
		kinds = kinds[:6]
	}
	return kinds[m.IntN(len(kinds))]()
}

func (m maker) pick(words ...string) any { return words[m.IntN(len(words))] }

func (m maker) object(depth int) map[string]any {
	fields, required := map[string]any{}, []any{}
	for range m.IntN(5) {
		name, _ := m.pick("a", "b", "c/~", "0", "", " é").(string)
		if _, taken := fields[name]; !taken && m.IntN(3) == 0 {
			required = append(required, name)
		}
		fields[name] = m.schema(depth)
	}
	return map[string]any{"type": "dict", "properties": fields, "required": required}
}

func (m maker) value(schema map[string]any, depth int) any {
	if m.IntN(12) == 0 || depth == 0 {
		return []any{nil, true, "x", json.Number("1.50"), []any{}, map[string]any{"a": json.Number("1e2")}, "", "a\r\nb"}[m.IntN(8)]
	}
	if choices, ok := schema["enum"].([]any); ok {
		return choices[m.IntN(len(choices))]
	}
	if several, ok := schema["anyOf"].([]any); ok {
		schema, _ = several[m.IntN(2)].(map[string]any)
	}
	kind := schema["type"]
	if several, ok := kind.([]any); ok {
		kind = several[m.IntN(2)]
	}
	switch kind {
	case "string":
		return m.pick("a", " a\n b ", "2026-01-02", "é\u2028😀", "")
	case "int", "float":
		return json.Number(m.pick("10.0", "-3", "1e2", "9007199254740993").(string))
	case "bool":
		return m.IntN(2) == 0
	case "list":
		list, items := []any{}, schema["items"].(map[string]any)
		for range m.IntN(4) {
			list = append(list, m.value(items, depth-1))
		}
		return list
	case "dict":
		return m.fields(schema, depth)
	}
	return nil
}

func (m maker) fields(schema map[string]any, depth int) map[string]any {
	object, fields := map[string]any{}, schema["properties"].(map[string]any)
	for name, field := range fields {
		if m.IntN(3) > 0 {
			object[name] = m.value(field.(map[string]any), depth-1)
		}
	}
	for _, name := range schema["required"].([]any) {
		name := name.(string)
		object[name] = m.value(fields[name].(map[string]any), depth-1)
	}
	if m.IntN(5) == 0 {
		object["beside"] = json.Number("1.0")
	}
	return object
}

func TestAnInputComesBackAsItWas(t *testing.T) {
	t.Parallel()
	fits := 0
	for seed := range uint64(600) {
		m := maker{rand.New(rand.NewPCG(seed, 1))}
		described := m.object(4)
		raw, err := json.Marshal(described)
		if err != nil {
			t.Fatal(err)
		}
		s := compiled(t, string(raw))
		input, err := contract.NewPayload(m.fields(described, 8))
		if err != nil {
			t.Fatal(err)
		}
		found := s.Validate(input)
		if len(found) == 0 {
			fits++
		}
		lacks := slices.ContainsFunc(found, func(f fault.Finding) bool { return strings.HasPrefix(f.Message, "required") })
		if _, read := again(t, s.Form(), string(input.JSON())); !lacks && !sameJSON(t, string(input.JSON()), read) {
			t.Fatalf("seed %s of %s: %s became %s", strconv.FormatUint(seed, 10), raw, input.JSON(), read)
		}
	}
	if fits < 100 {
		t.Errorf("%d inputs alone kept their contracts", fits)
	}
}

// whatever is posted, the input is JSON, and comes back of its own form.
func FuzzRead(f *testing.F) {
	forms := []*form.Field{compiled(f, sample).Form(), compiled(f, `{"type":"dict"}`).Form(), compiled(f, `{"required":["l"],"properties":{"l":{"type":["null","list"],"items":{"type":"list","items":{"type":["int","null"]}}}}}`).Form()}
	for _, seed := range []string{
		"/text=a%0D%0Ab&/n=1e2&/b=true&/e=%221%22", "/l/0=a&/l/3=b&/rows/2/k=x&/rows/2/v/0=1&%23/rows/1=%7B%7D", "%23=%7B%22a%22%3A1%7D&%23/o=%5B%5D&/o/y~1z=2",
		"/l/0/0=1&/l/0=2&%23/l=%5B%5B1%5D%5D&/l=3", "%23/l=null&/es=%22a%22&/es=%22b%22", "/%FF=1&%23/~2~=1&//=2", "/f=@a&/fs=b&/d=2026-02-30",
	} {
		f.Add(seed, seed)
	}
	fuzzbound.Run(f, func(t *testing.T, query, files string) {
		values, _ := url.ParseQuery(query)
		names, _ := url.ParseQuery(files)
		for _, each := range forms {
			c, input, found := form.Read(each, form.Posted{Values: values, Files: names})
			contract.Place(c, found)
			if !json.Valid(input) {
				t.Fatalf("it isn't JSON: %s", input)
			}
			if _, err := contract.Decode(input, 0); err != nil || len(found) > 0 {
				continue
			}
			if _, read := again(t, each, string(input)); !sameJSON(t, string(input), read) {
				t.Fatalf("%s became %s", input, read)
			}
		}
	})
}

// An input that keeps its contract comes back, whatever the contract.
func FuzzFill(f *testing.F) {
	for _, seed := range [][2]string{
		{sample, `{"text":"a","rows":[{"k":"","v":[1e2]},{}],"o":{"z":null},"e":1.0}`},
		{`{"properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{"b":[]}}}`},
		{`{"required":["a","b"],"properties":{"a":{"type":["null","string"]},"b":{"anyOf":[{"type":"null"},{"properties":{"c":{"type":"int"}}}]}}}`, `{"a":null,"b":{}}`},
		{`{"properties":{"a":{"type":"list","items":{"oneOf":[{"const":1},{"const":"b"}]}}}}`, `{"a":[1,"b"],"":1}`},
	} {
		f.Add(seed[0], seed[1])
	}
	fuzzbound.Run(f, func(t *testing.T, schema, input string) {
		s, _ := contract.Compile([]byte(schema))
		p, err := contract.Decode([]byte(input), 1<<14)
		if s == nil || err != nil || len(s.Validate(p)) > 0 {
			return
		}
		if _, read := again(t, s.Form(), input); !sameJSON(t, input, read) {
			t.Fatalf("%s became %s", input, read)
		}
	})
}
