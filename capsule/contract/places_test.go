package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilePlaces(t *testing.T) {
	const file = `{"type": "string", "format": "file_path"}`
	c, findings := Parse([]byte(`{
	  "definitions": {"far": {"type": "object", "properties": {"deep": ` + file + `, "again": {"$ref": "#/definitions/far"}}}},
	  "input": {"type": "object", "properties": {
	    "plain": {"type": "string"}, "one": ` + file + `, "list": {"type": "array", "items": ` + file + `},
	    "either": {"anyOf": [{"type": "int"}, ` + file + `]}, "ref": {"$ref": "#/definitions/far"}
	  }, "additionalProperties": ` + file + `, "patternProperties": {"^x": ` + file + `}},
	  "output": {"type": "object", "properties": {"n": {"type": "int"}}}
	}`))
	if c == nil {
		t.Fatal(findings)
	}
	want := []string{
		"/definitions/far/properties/deep", "/input/additionalProperties", "/input/patternProperties/^x",
		"/input/properties/either/anyOf/1", "/input/properties/list/items", "/input/properties/one",
	}
	if diff := cmp.Diff(want, c.Input.FilePlaces()); diff != "" {
		t.Error(diff)
	}
	if got := c.Output.FilePlaces(); got != nil {
		t.Errorf("%q", got)
	}
}
