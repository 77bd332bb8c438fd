package contract

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// sketch writes the fields of a form in short: "*" is required, "?" may be null, "+" takes more as JSON.
func sketch(f *form.Field) string {
	text := f.Key
	if f.Required {
		text += "*"
	}
	if f.Nullable {
		text += "?"
	}
	if text += ":" + string(f.Kind); f.More {
		text += "+"
	}
	var parts []string
	for _, part := range f.Fields {
		parts = append(parts, sketch(part))
	}
	if f.Kind == form.Object {
		text += "{" + strings.Join(parts, " ") + "}"
	}
	for _, choice := range f.Choices {
		text += "|" + choice.Value
	}
	if f.Item != nil {
		text += "[" + sketch(f.Item) + "]"
	}
	return text
}

func TestAFormHasAFieldForEachProperty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, schema, want string }{
		{"in the author's order", `{"properties":{"z":{"type":"string"},"a":{"type":"int"},"m":{"type":"float"},"b":{"type":"bool"}},"required":["m"]}`, "*:object{z:text a:integer m*:number b:boolean}"},
		{"by format", `{"properties":{"f":{"type":"string","format":"file_path"},"d":{"type":"string","format":"date"},"t":{"type":"string","format":"time"},"w":{"type":"string","format":"date-time"},"m":{"type":"string","format":"email"}}}`, "*:object{f:file d:date t:time w:date-time m:text}"},
		{"lists and objects", `{"properties":{"l":{"type":"list","items":{"type":"string","format":"file_path"}},"o":{"type":"dict","required":["y"],"properties":{"x":{"type":"list","items":{"type":"dict","properties":{"n":{"type":"int"}}}},"y":{"type":"bool"}}}}}`, "*:object{l:list[:file] o:object{x:list[:object{n:integer}] y*:boolean}}"},
		{"choices as they were written", `{"properties":{"e":{"enum":["a",1.0,null,true,1e2,9007199254740993]},"c":{"const":{"b":1,"a":[]}}}}`, `*:object{e:enum|"a"|1.0|null|true|1e2|9007199254740993 c:enum|{"a":[],"b":1}}`},
		{"alternatives that are constants", `{"properties":{"e":{"oneOf":[{"const":"a","title":"The A"},{"const":"b"}]}}}`, `*:object{e:enum|"a"|"b"}`},
		{"what may be null", `{"required":["b"],"properties":{"a":{"type":["null","string"]},"b":{"anyOf":[{"$ref":"#/$defs/o"},{"type":"null"}]}},"$defs":{"o":{"type":"object","properties":{"x":{"type":"int"}}}}}`, "*:object{a?:text b*?:object{x:integer}}"},
		{"references, and what allOf adds", `{"properties":{"a":{"$ref":"#/definitions/o"}},"allOf":[{"required":["a","new"]},{"properties":{"more":{"type":"int"}}}],"definitions":{"o":{"allOf":[{"properties":{"x":{"type":"int"}}},{"properties":{"x":{"minimum":1},"y":{"type":"bool"}},"required":["x"]}]}}}`, "*:object{a*:object{x*:integer y:boolean} more:integer new*:json}"},
		{"what a form can't say", `{"properties":{"any":{},"several":{"type":["int","string"]},"tuple":{"type":"list","items":[{"type":"int"}]},"list":{"type":"list"},"free":{"type":"dict"},"map":{"type":"dict","additionalProperties":{"type":"int"}},"one":{"oneOf":[{"type":"int"},{"type":"string"}]},"lists":{"type":"list","items":{}},"null":{"type":"null"}}}`, "*:object{any:json several:json tuple:json list:json free:json map:json one:json lists:json null:json}"},
		{"a closed object without fields", `{"properties":{"o":{"type":"dict","additionalProperties":false}}}`, "*:object{o:object{}}"},
		{"fields beside those that it has", `{"properties":{"a":{"properties":{"x":{"type":"int"}},"patternProperties":{"^y":{"type":"int"}}},"b":{"properties":{"x":{"type":"int"}},"additionalProperties":true},"c":{"properties":{"x":{"type":"int"}},"then":{"properties":{"y":{}}},"if":{}},"d":{"properties":{"x":{"type":"int"}},"anyOf":[{"required":["x"]},{"properties":{"x":{}}}],"additionalProperties":false}}}`, "*:object{a:object+{x:integer} b:object+{x:integer} c:object+{x:integer} d:object{x:integer}}"},
		{"a schema that holds itself", `{"properties":{"name":{"type":"string"},"left":{"$ref":"#"},"children":{"type":"list","items":{"$ref":"#"}}}}`, "*:object{name:text left:json children:json}"},
		{"a schema that holds itself by way of others", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]},"n":{"type":"int"}}}}}`, "*:object{b:object{a:json n:integer}}"},
		{"the same schema in two places", `{"properties":{"a":{"$ref":"#/$defs/n"},"b":{"properties":{"c":{"$ref":"#/$defs/n"}}}},"$defs":{"n":{"type":"object","properties":{"x":{"type":"int"}}}}}`, "*:object{a:object{x:integer} b:object{c:object{x:integer}}}"},
		{"no object at all", `{"type":"string","enum":["a"]}`, "*:json"},
		{"any object", `{"type":["dict","null"]}`, "*:json"},
		{"what is never allowed has none", `{"properties":{"a":false,"b":true}}`, "*:object{b:json}"},
		{"what a draft ignores has none", `{"properties":{"a":{"$ref":"#/definitions/o","properties":{"z":{"type":"int"}}}},"definitions":{"o":{"properties":{"x":{"type":"int"}}}}}`, "*:object{a:object{x:integer}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, sketch(compiled(t, c.schema).Form())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFormTellsWhatTheContractSays(t *testing.T) {
	t.Parallel()
	s := compiled(t, `{"title":"All","description":"Everything","properties":{
		"n":{"type":"float","title":"How many","description":"D","minimum":1e2,"maximum":100.50,"exclusiveMinimum":9007199254740993,"multipleOf":0.10,"default":1.0,"examples":[2.50]},
		"s":{"type":"string","pattern":"^(?!b)\\u0061","minLength":1,"maxLength":5.0,"default":"x","examples":["y"],"format":"unheard-of"},
		"u":{"type":"string","format":"uri"},
		"long":{"type":"string"},
		"l":{"type":"list","items":{"type":"int"},"minItems":1,"maxItems":3,"default":[1,2]},
		"e":{"enum":["a","b"],"default":"b"}, "mixed":{"enum":["1",1]}, "named":{"oneOf":[{"const":"a","title":"The A"},{"const":"b"}]},
		"free":{"description":"F",  "type":"dict", "x-b":1,"x-a":1}}}`)
	want := &form.Field{Label: "All", Description: "Everything", Kind: form.Object, Required: true, Fields: []*form.Field{
		{Key: "n", Label: "How many", Description: "D", Kind: form.Number, Default: "1.0", Example: "2.50", Bounds: form.Bounds{Minimum: "1e2", Maximum: "100.50", ExclusiveMinimum: "9007199254740993", MultipleOf: "0.10"}},
		{Key: "s", Label: "s", Kind: form.Text, Default: "x", Example: "y", Pattern: `^(?!b)\u0061`, Lines: 1, Bounds: form.Bounds{MinLength: "1", MaxLength: "5"}},
		{Key: "u", Label: "u", Kind: form.Text, Format: "uri", Lines: 1},
		{Key: "long", Label: "long", Kind: form.Text, Lines: 3},
		{Key: "l", Label: "l", Kind: form.List, Default: "[1,2]", Bounds: form.Bounds{MinItems: "1", MaxItems: "3"}, Item: &form.Field{Kind: form.Integer}},
		{Key: "e", Label: "e", Kind: form.Enum, Default: `"b"`, Choices: []form.Choice{{Label: "a", Value: `"a"`}, {Label: "b", Value: `"b"`}}},
		{Key: "mixed", Label: "mixed", Kind: form.Enum, Choices: []form.Choice{{Label: `"1"`, Value: `"1"`}, {Label: "1", Value: "1"}}},
		{Key: "named", Label: "named", Kind: form.Enum, Choices: []form.Choice{{Label: "The A", Value: `"a"`}, {Label: "b", Value: `"b"`}}},
		{Key: "free", Label: "free", Description: "F", Kind: form.JSON, Schema: "{\n  \"description\": \"F\",\n  \"type\": \"dict\",\n  \"x-b\": 1,\n  \"x-a\": 1\n}"},
	}}
	if diff := cmp.Diff(want, s.Form()); diff != "" {
		t.Error(diff)
	}
}

// Each contract of the examples has a form with all its properties, in the order of the file.
func TestTheExamplesHaveForms(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("../../examples", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != FileName {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var file struct {
			Input struct{ Properties json.RawMessage }
		}
		agreed, findings := Parse(raw)
		if err := json.Unmarshal(raw, &file); err != nil || agreed == nil {
			return fmt.Errorf("%s: %v, %w", path, findings, err)
		}
		var want, got []string
		for name := range strictjson.Members(file.Input.Properties) {
			want = append(want, name)
		}
		for _, f := range agreed.Input.Form().Fields {
			got = append(got, f.Key)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(path, diff)
		}
		seen++
		return nil
	})
	if err != nil || seen < 25 {
		t.Errorf("%d contracts, %v", seen, err)
	}
}

// fieldsIn counts all fields of a form.
func fieldsIn(f *form.Field) (count, depth, bytes int) {
	count, bytes = 1, len(f.Description)+len(f.Schema)+len(f.Default)+len(f.Example)
	for _, choice := range f.Choices {
		bytes += len(choice.Label) + len(choice.Value)
	}
	parts := f.Fields
	if f.Item != nil {
		parts = []*form.Field{f.Item}
	}
	for _, part := range parts {
		below, deep, more := fieldsIn(part)
		count, depth, bytes = count+below, max(depth, deep), bytes+more
	}
	return count, depth + 1, bytes
}

func TestAFormIsBounded(t *testing.T) {
	t.Parallel()
	wide := `"a0":{"type":"int"}`
	for i := range 2000 {
		wide += fmt.Sprintf(`,"f%d":{"type":"int"}`, i)
	}
	values := strings.TrimSuffix(strings.Repeat(`"%d",`, 20_000), ",")
	values = fmt.Sprintf(values, numbers(20_000)...)
	for _, c := range []struct {
		name, schema string
		check        func(f *form.Field) bool
	}{
		{"many properties are given as JSON beyond 500", `{"properties":{` + wide + `}}`, func(f *form.Field) bool { return len(f.Fields) == 500 && f.More && f.Schema != "" }},
		{"an object of many properties is JSON, and its neighbours have fields", `{"properties":{"o":{"properties":{` + wide + `}},"x":{"type":"int"}}}`, func(f *form.Field) bool { return sketch(f) == "*:object{o:json x:integer}" }},
		{"references that double", doubling(20), nil},
		{"a long description in many places", `{"properties":{` + strings.Join(quoted(400, `{"$ref":"#/$defs/d"}`), ",") + `},"$defs":{"d":{"type":"string","description":"` + strings.Repeat("d", 50_000) + `"}}}`, nil},
		{"many choices in many places", `{"properties":{` + strings.Join(quoted(400, `{"$ref":"#/$defs/d"}`), ",") + `},"$defs":{"d":{"enum":[` + values + `]}}}`, func(f *form.Field) bool { return f.Fields[0].Kind == form.Enum && f.Fields[399].Kind == form.JSON }},
		{"a deep one", strings.Repeat(`{"properties":{"a":`, 15) + `{}` + strings.Repeat("}}", 15), func(f *form.Field) bool { return strings.Count(sketch(f), "object") == 8 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := compiled(t, c.schema)
			start := processorTime()
			f := s.Form()
			count, depth, bytes := fieldsIn(f)
			if took := processorTime() - start; count > 1+maxFormFields || depth > formDepth+1 || bytes > 2*maxFormBytes || took > 5*time.Second {
				t.Errorf("%d fields, %d deep, %d bytes, after %v", count, depth, bytes, took)
			}
			if c.check != nil && !c.check(f) {
				t.Errorf("of %d fields the first is %s", len(f.Fields), f.Fields[0].Kind)
			}
		})
	}
}

func numbers(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func quoted(n int, value string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"f%d":%s`, i, value)
	}
	return list
}

// doubling is a schema each of whose definitions holds the next one twice.
func doubling(n int) string {
	text := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range n {
		text += fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%[2]d"}}},`, i, i+1)
	}
	return text + fmt.Sprintf(`"d%d":{"type":"int"}}}`, n)
}

func TestFindingsStandAtTheirFields(t *testing.T) {
	t.Parallel()
	s := compiled(t, `{"required":["title","o"],"additionalProperties":false,"properties":{"n":{"type":"int"},"title":{"type":"string"},"o":{"type":"dict","required":["x"],"properties":{"x":{"type":"int"}}},
		"l":{"type":"list","items":{"type":"dict","required":["we\"ird/"],"properties":{"we\"ird/":{"type":"string","maxLength":2},"j":{"type":"list","items":{}}}}},"free":{"type":"dict","additionalProperties":{"type":"int"}}}}`)
	input := payload(t, `{"n":"x","l":[{"we\"ird/":"ab"},{"j":7},{"we\"ird/":"abc"}],"free":{"a":{"b":"c"}},"unknown":1,"o":{}}`)
	c := form.Fill(s.Form(), input.JSON())
	first := Place(c, s.Validate(input))
	got := map[string]string{}
	for each := range c.All() {
		for _, f := range each.Findings {
			got[each.Pointer] += f.Message
		}
	}
	want := map[string]string{
		"": `unexpected field "unknown"`, "/title": `required field "title" is missing`, "/o/x": `required field "x" is missing`,
		"/n": "expected integer, got string", "/l/1/we\"ird~1": `required field "we\"ird/" is missing`,
		"/l/1/j": "expected array, got integer", "/l/2/we\"ird~1": "is too long: at most 2 characters", "/free": "expected integer, got object",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if first != c {
		t.Errorf("the first stands at %q", first.Pointer)
	}
	if first := Place(form.Fill(s.Form(), nil), nil); first != nil {
		t.Errorf("there is %v", first)
	}
	c = form.Fill(s.Form(), nil)
	if first := Place(c, []fault.Finding{{Pointer: "/o/x/y"}, {Pointer: "/title", Message: "m"}}); first.Pointer != "/title" {
		t.Errorf("the first in the form's order is %q", first.Pointer)
	}
}

func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		`{"properties":{"a":{"$ref":"#"},"b":{"type":["int","null"],"enum":[1,null]},"c":{"type":"list","items":{"$ref":"#/$defs/d"}}},"required":["a","x"],"$defs":{"d":{"anyOf":[{"type":"null"},{"properties":{"e":{"type":"string","format":"date"}}}]}}}`,
		`{"oneOf":[{"const":1},{"const":2,"title":"t"}]}`, `{"allOf":[{"properties":{"a":true}},{"properties":{"a":false}}]}`, doubling(6), `{"type":"dict","additionalProperties":false}`,
		`{"properties":{"l":{"prefixItems":[{}]},"p":{"patternProperties":{"^x":{"type":"int"}}},"s":{"type":"string","pattern":"a","default":"b","examples":[1]}}}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":{"b":1},"b":null,"c":[null,{"e":"2006-01-02"}],"l":[1],"p":{"x":2},"s":"\r"}`))
	}
	fuzzbound.Run(f, func(t *testing.T, raw, instance []byte) {
		s, _ := Compile(raw)
		if s == nil {
			return
		}
		described := s.Form()
		if count, depth, bytes := fieldsIn(described); count > 1+maxFormFields || depth > formDepth+1 || bytes > 2*maxFormBytes {
			t.Fatalf("%d fields, %d deep, %d bytes", count, depth, bytes)
		}
		if described.Kind != form.Object && described.Kind != form.JSON {
			t.Fatalf("the whole is %s", described.Kind)
		}
		p, err := Decode(instance, 1<<12)
		if err != nil {
			return
		}
		c := form.Fill(described, p.JSON())
		Place(c, s.Validate(p))
	})
}
