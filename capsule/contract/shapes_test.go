package contract

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShape(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"what is sure": {
			`{"type": "object", "required": ["a"], "additionalProperties": false, "properties": {
				"a": {"type": "int"}, "f": {"type": "string", "format": "file_path"}, "l": {"type": "list", "items": {"enum": ["x", "y"]}}}}`,
			`{"Types":["object"],"Required":["a"],"Closed":true,"Fields":{"a":{"Types":["integer"]},"f":{"Types":["string"],"File":true},"l":{"Types":["array"],"Item":{"Choices":["x","y"]}}}}`,
		},
		"all of several": {
			`{"allOf": [{"$ref": "#/definitions/n"}, {"type": ["integer", "string"]}], "definitions": {"n": {"type": ["number", "null"]}}}`,
			`{"Types":["integer"]}`,
		},
		"closed by one of several": {
			`{"allOf": [{"additionalProperties": false, "properties": {"a": {}}}, {"properties": {"b": {}}, "additionalProperties": true}]}`,
			`{"Closed":true,"Fields":{"a":{},"b":{}}}`,
		},
		"required by several, each once": {
			`{"required": ["b"], "allOf": [{"required": ["c", "b"]}, {"$ref": "#/definitions/r"}], "definitions": {"r": {"required": ["a"]}}}`, `{"Required":["a","b","c"]}`,
		},
		"fields of several": {
			`{"properties": {"a": {"type": ["int", "string"]}}, "allOf": [{"properties": {"a": {"type": ["float", "null"]}}}]}`, `{"Fields":{"a":{"Types":["integer"]}}}`,
		},
		"what narrows nothing":           {`{"type": "string", "allOf": [{}, {"minLength": 1}]}`, `{"Types":["string"]}`},
		"types that have no value":       {`{"type": "string", "allOf": [{"type": "boolean"}]}`, `{}`},
		"numbers of both kinds":          {`{"type": ["number", "string"], "allOf": [{"type": ["number", "null"]}]}`, `{"Types":["number"]}`},
		"the choices of the first":       {`{"enum": ["a", "b"], "allOf": [{"enum": ["a"]}]}`, `{"Choices":["a","b"]}`},
		"one value":                      {`{"const": "a", "enum": ["a", "b"]}`, `{"Choices":["a"]}`},
		"items of several":               {`{"items": {"type": "string"}, "allOf": [{"items": {"enum": ["x"]}}]}`, `{"Item":{"Types":["string"],"Choices":["x"]}}`},
		"a file by all of several":       {`{"allOf": [{"type": "string", "format": "file_path"}, {"minLength": 1}]}`, `{"Types":["string"],"File":true}`},
		"a file under not":               {`{"type": "string", "not": {"type": "string", "format": "file_path"}}`, `{"Types":["string"]}`},
		"additional ones of a form":      {`{"properties": {"a": {}}, "additionalProperties": {"not": {}}}`, `{"Fields":{"a":{}}}`},
		"alternatives aren't sure":       {`{"oneOf": [{"type": "string"}, {"type": "integer"}]}`, `{}`},
		"a file in one case":             {`{"type": "string", "anyOf": [{"format": "file_path", "type": "string"}, {"enum": ["none"]}]}`, `{}`},
		"a list whose items differ":      {`{"type": "list", "items": [{"type": "string"}, {"type": "int"}]}`, `{"Types":["array"]}`},
		"fields beyond those by name":    {`{"additionalProperties": {"type": "string"}}`, `{}`},
		"patterns of names are open":     {`{"additionalProperties": false, "patternProperties": {"^x": {}}}`, `{}`},
		"a schema that refers to itself": {`{"properties": {"a": {"$ref": "#"}}}`, strings.Repeat(`{"Fields":{"a":`, 8) + "{}" + strings.Repeat("}}", 8)},
	} {
		t.Run(name, func(t *testing.T) {
			schema, findings := Compile([]byte(c.schema))
			if schema == nil {
				t.Fatal(findings)
			}
			var want Shape
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, schema.Shape()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAShapeIsBounded(t *testing.T) {
	names := make([]string, 100)
	for i := range names {
		names[i] = `"f` + strings.Repeat("x", i) + `": {"$ref": "#"}`
	}
	schema, findings := Compile([]byte(`{"properties": {` + strings.Join(names, ",") + `}}`))
	if schema == nil {
		t.Fatal(findings)
	}
	if n := count(schema.Shape()); n > maxShapes*101 {
		t.Errorf("%d parts", n)
	}
}

func count(s *Shape) int {
	n := 1
	for _, field := range s.Fields {
		n += count(field)
	}
	return n
}
