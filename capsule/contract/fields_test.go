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
