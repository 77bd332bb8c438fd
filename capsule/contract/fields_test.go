package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func inputOf(t *testing.T, schema string) *Schema {
	t.Helper()
	agreed, findings := Parse([]byte(`{"input": ` + schema + `, "output": {"type": "object"}, "definitions": {"d": {"type": "dict", "description": "D", "required": ["x"], "properties": {"x": {"type": "int"}, "again": {"$ref": "#/definitions/d"}}}}}`))
	if agreed == nil {
		t.Fatal(findings)
	}
	return agreed.Input
}

func TestFields(t *testing.T) {
	s := inputOf(t, `{"type": "object", "required": ["table", "n"], "properties": {
		"table": {"type": "string", "format": "file_path", "description": "A table"},
		"more": {"type": "list", "items": {"type": "string", "format": "file_path"}},
		"n": {"type": ["int", "null"], "default": 0},
		"kind": {"enum": ["a", "b"]},
		"words": {"type": "array", "items": {"type": "string"}},
		"one": {"$ref": "#/definitions/d"},
		"open": {}
	}, "allOf": [{"required": ["open"]}], "anyOf": [{"required": ["words"]}, {"properties": {"other": {"type": "bool"}}}]}`)
	got := s.Fields()
	want := []Field{
		{Name: "n", Type: "null or integer", Required: true, Default: json.Number("0")},
		{Name: "open", Type: "any", Required: true},
		{Name: "table", Type: "file", Required: true, Description: "A table"},
		{Name: "kind", Type: "any", Choices: []any{"a", "b"}},
		{Name: "more", Type: "files"},
		{Name: "one", Type: "object", Description: "D"},
		{Name: "one.x", Type: "integer", Required: true},
		{Name: "one.again", Type: "object", Description: "D"},
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Error(diff)
	}
	deepest := 0
	for _, f := range got {
		deepest = max(deepest, strings.Count(f.Name, ".")+1)
	}
	if last := got[len(got)-2:]; deepest != fieldDepth || last[0].Name != "other" || last[1].Type != "array of string" {
		t.Errorf("%d deep, at the end %+v", deepest, last)
	}
}

func TestExamplesKeepTheContract(t *testing.T) {
	for _, c := range []struct {
		name, schema, want string
		ok                 bool
	}{
		{"nothing is needed", `{"type":"object","properties":{"a":{"type":"int"}}}`, `{}`, true},
		{"by type", `{"type":"object","required":["s","i","f","b","l","o"],"properties":{"s":{"type":"string"},"i":{"type":"int"},"f":{"type":"float"},"b":{"type":"bool"},"l":{"type":"list"},"o":{"$ref":"#/definitions/d"}}}`, `{"b":true,"f":1,"i":1,"l":[],"o":{"x":1},"s":"text"}`, true},
		{"by what it says", `{"type":"object","required":["d","e","c","k"],"properties":{"d":{"default":false},"e":{"examples":["x"]},"c":{"enum":[7]},"k":{"const":"y"}}}`, `{"c":7,"d":false,"e":"x","k":"y"}`, true},
		{"within bounds", `{"type":"object","required":["a","b","c","d","l"],"properties":{"a":{"type":"int","minimum":5},"b":{"type":"int","exclusiveMinimum":5},"c":{"type":"number","maximum":-2},"d":{"type":"string","minLength":6},"l":{"type":"list","minItems":2,"items":{"type":"int"}}}}`, `{"a":5,"b":6,"c":-2,"d":"text text","l":[1,1]}`, true},
		{"but for files", `{"type":"object","required":["f"],"properties":{"f":{"type":"string","format":"file_path"}}}`, `{}`, false},
		{"not for what it can't know", `{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^[0-9]+$"}}}`, `{"a":"text"}`, false},
	} {
		got, ok := inputOf(t, c.schema).Example()
		if ok != c.ok || string(got.JSON()) != c.want {
			t.Errorf("%s: %s, %v", c.name, got.JSON(), ok)
		}
	}
}

func TestAnExampleOfASchemaThatHoldsItselfIsBounded(t *testing.T) {
	var names, fields []string
	for i := range 30 {
		names = append(names, fmt.Sprintf(`"f%d"`, i))
		fields = append(fields, fmt.Sprintf(`"f%d":{"$ref":"#/input"}`, i))
	}
	s := inputOf(t, `{"type":"object","required":[`+strings.Join(names, ",")+`],"properties":{`+strings.Join(fields, ",")+`}}`)
	got, ok := s.Example()
	if n := strings.Count(string(got.JSON()), "{"); ok || n > maxFields {
		t.Errorf("%d objects, %v", n, ok)
	}
	if n := len(s.Fields()); n != maxFields {
		t.Errorf("%d fields", n)
	}
}

func TestWhatIsToldOfAField(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		want   Field
	}{
		"nothing":                    {`{}`, Field{Type: "any"}},
		"several types":              {`{"type":["string","int","null"]}`, Field{Type: "null or integer or string"}},
		"what its alternatives are":  {`{"anyOf":[{"type":"int"},{"type":"null"}]}`, Field{Type: "null or integer"}},
		"a list of anything":         {`{"type":"list"}`, Field{Type: "array"}},
		"a list of one type":         {`{"type":"list","items":{"type":"int"}}`, Field{Type: "array of integer"}},
		"a list of lists":            {`{"type":"list","items":{"type":"list","items":{}}}`, Field{Type: "array of array of any"}},
		"a list, or nothing":         {`{"type":["list","null"],"items":{"type":"int"}}`, Field{Type: "null or array"}},
		"a tuple, by its first":      {`{"type":"list","prefixItems":[{"type":"int"},{"type":"bool"}]}`, Field{Type: "array of integer"}},
		"a file, whatever else":      {`{"anyOf":[{"type":"null"},` + file + `]}`, Field{Type: FileField}},
		"files, whatever else":       {`{"anyOf":[{"type":"null"},{"items":` + file + `}]}`, Field{Type: FilesField}},
		"no file by what it is not":  {`{"not":` + file + `,"type":"string"}`, Field{Type: "string"}},
		"a default that is false":    {`{"default":false}`, Field{Type: "any", Default: false}},
		"the first default":          {`{"allOf":[{"default":1,"description":""},{"default":2,"description":"two"}]}`, Field{Type: "any", Default: json.Number("1"), Description: "two"}},
		"its own words first":        {`{"description":"own","$ref":"#/$defs/x"}`, Field{Type: "any", Description: "own", Choices: []any{"a"}}},
		"one value, even null":       {`{"const":null,"enum":[1,2]}`, Field{Type: "any", Choices: []any{nil}}},
		"choices behind a reference": {`{"allOf":[{"$ref":"#/$defs/x"}]}`, Field{Type: "any", Choices: []any{"a"}, Description: "far"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name = "v"
			got := compiled(t, `{`+schema2020+`"$defs":{"x":{"enum":["a"],"description":"far"}},"properties":{"v":`+c.schema+`}}`).Fields()
			if diff := cmp.Diff([]Field{c.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARequiredFieldIsOneInEachCase(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{},"b":{},"c":{},"d":{}},"required":["c"],"allOf":[{"required":["b"]}],"anyOf":[{"required":["a"]}],"if":{"required":["d"]},"then":{"required":["d"]}}`)
	var got []string
	for _, f := range s.Fields() {
		got = append(got, fmt.Sprint(f.Name, " ", f.Required))
	}
	if diff := cmp.Diff([]string{"b true", "c true", "a false", "d false"}, got); diff != "" {
		t.Error(diff)
	}
}
