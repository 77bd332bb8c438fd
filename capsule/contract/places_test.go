package contract

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
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

func TestFilePlacesLeadIntoTheAuthorsDocument(t *testing.T) {
	s := compiled(t, `{`+schema2020+`"$defs":{"f":`+file+`},
		"properties":{
			"tuple":{"prefixItems":[{},`+file+`],"items":`+file+`},
			"beside":{"$ref":"#/$defs/f","maxLength":9},
			"some":{"contains":`+file+`}},
		"dependentSchemas":{"k":{"properties":{"f":`+file+`}}},
		"if":{"properties":{"t":`+file+`}},"then":{"properties":{"t":`+file+`}},"not":`+file+`,"propertyNames":`+file+`}`)
	want := []string{
		"/$defs/f", "/dependentSchemas/k/properties/f", "/if/properties/t", "/not", "/properties/some/contains",
		"/properties/tuple/items", "/properties/tuple/prefixItems/1", "/propertyNames", "/then/properties/t",
	}
	if diff := cmp.Diff(want, s.FilePlaces()); diff != "" {
		t.Error(diff)
	}
}

func TestFileFieldsOfGeneratedSchemas(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		want   []string
	}{
		"an optional one":                {`{"properties":{"f":{"anyOf":[` + file + `,{"type":"null"}]},"s":{"type":"string"}}}`, []string{"f"}},
		"behind a reference at the top":  {`{"$defs":{"m":{"properties":{"f":` + file + `}}},"$ref":"#/$defs/m"}`, []string{"f"}},
		"in an alternative of the whole": {`{"oneOf":[{"properties":{"a":` + file + `}},{"properties":{"b":` + file + `}}]}`, []string{"a", "b"}},
		"of a dependency":                {`{"dependentSchemas":{"k":{"properties":{"f":` + file + `}}}}`, []string{"f"}},
		"of a branch":                    {`{"if":{"properties":{"q":` + file + `}},"then":{"properties":{"t":` + file + `}},"else":{"properties":{"e":` + file + `}}}`, []string{"e", "t"}},
		"a list of them is none":         {`{"properties":{"l":{"items":` + file + `}}}`, nil},
		"what is excluded is none":       {`{"not":{"properties":{"f":` + file + `}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, compiled(t, c.schema).FileFields()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFieldsThatTakeFiles(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		want   []string
	}{
		"one, a list, a text":           {`{"properties":{"f":` + file + `,"l":{"type":"array","items":` + file + `},"s":{"type":"string"}}}`, []string{"f", "l"}},
		"an optional list":              {`{"properties":{"l":{"anyOf":[{"type":"array","items":` + file + `},{"type":"null"}]}}}`, []string{"l"}},
		"a list of references":          {`{"$defs":{"p":` + file + `},"properties":{"l":{"items":{"$ref":"#/$defs/p"}}}}`, []string{"l"}},
		"not a tuple, of which one is":  {`{` + schema2020 + `"properties":{"l":{"prefixItems":[{}],"items":` + file + `}}}`, nil},
		"a list of lists is none":       {`{"properties":{"l":{"items":{"items":` + file + `}}}}`, nil},
		"a list of objects with a file": {`{"properties":{"l":{"items":{"properties":{"f":` + file + `}}}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, compiled(t, c.schema).TakingFiles()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseFieldOfGeneratedSchemas(t *testing.T) {
	s := compiled(t, `{`+schema2020+`"$defs":{"count":{"type":"integer"},"mode":{"enum":["a","b"],"type":"string"}},
		"properties":{
			"opt":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},
			"text":{"anyOf":[{"type":"string"},{"type":"null"}]},
			"count":{"$ref":"#/$defs/count","minimum":3},
			"mode":{"$ref":"#/$defs/mode","default":"a"},
			"pair":{"prefixItems":[{"type":"integer"}]},
			"kind":{"const":"x"}},
		"dependentSchemas":{"mode":{"properties":{"level":{"type":"number"}}}},
		"additionalProperties":false}`)
	for _, c := range []struct {
		field, text string
		want        any
	}{
		{"opt", "7", json.Number("7")},
		{"opt", "null", nil},
		{"text", "null", "null"},
		{"text", "7", "7"},
		{"count", "2", json.Number("2")}, // its bound is for Validate
		{"mode", "a", "a"},
		{"mode", "7", "7"},
		{"pair", "[1]", []any{json.Number("1")}},
		{"pair", "x", "x"},
		{"kind", "x", "x"},
		{"level", "1.5", json.Number("1.5")},
	} {
		t.Run(c.field+" "+c.text, func(t *testing.T) {
			got, err := s.ParseField(c.field, c.text)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
	for _, c := range []struct{ field, text, want, hint string }{
		{"opt", "many", "expected null or integer, got text that isn't JSON", "whole number"},
		{"count", "2.5", "expected integer, got number", "whole number"},
		{"level", "[1]", "expected number, got array", "0.5"},
		{"cuont", "1", `the contract has no field "cuont"`, `did you mean "count"?`},
	} {
		t.Run(c.field+" "+c.text+" is refused", func(t *testing.T) {
			_, err := s.ParseField(c.field, c.text)
			e := fault.Public(err)
			if !fault.Is(err, fault.Input) || !strings.Contains(e.Msg, c.want) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("%v (%s)", err, e.Hint)
			}
		})
	}
}

func TestOneFieldOfSeveralForms(t *testing.T) {
	s := compiled(t, `{"oneOf":[
		{"properties":{"kind":{"const":"a"},"size":{"type":"integer"}},"additionalProperties":false},
		{"properties":{"kind":{"const":"b"},"name":{"type":"string"}},"additionalProperties":false}]}`)
	if v, err := s.ParseField("size", "3"); err != nil || v != json.Number("3") {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := s.ParseField("name", "3"); err != nil || v != "3" {
		t.Errorf("%v, %v", v, err)
	}
	_, err := s.ParseField("nam", "3")
	if hint := fault.Public(err).Hint; err == nil || hint != `did you mean "name"?` {
		t.Errorf("%v (%s)", err, hint)
	}
}
