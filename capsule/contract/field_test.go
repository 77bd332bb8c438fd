package contract

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestParseField(t *testing.T) {
	s := compiled(t, `{"definitions":{"n":{"type":"int"}},"additionalProperties":false,
		"patternProperties":{"^x-":{"type":"bool"}},
		"allOf":[{"properties":{"all":{"type":"float"}}}],
		"properties":{
			"s":{"type":"string"},"i":{"type":"int"},"f":{"type":"float"},"b":{"type":"bool"},"z":{"type":"null"},
			"o":{"type":"dict","properties":{"deep":{"type":"dict","properties":{"i":{"$ref":"#/definitions/n"}}}}},
			"l":{"type":"list","items":{"type":"int"}},"any":{},"e":{"enum":["a",5]},"in":{"type":["int","null"]},"sn":{"type":["string","null"]},
			"opt":{"anyOf":[{"type":"int"},{"type":"null"}]},"file":{"type":"string","format":"file_path"},"map":{"additionalProperties":{"type":"int"}}}}`)
	num := func(text string) any { return json.Number(text) }
	good := []struct {
		name, path, text string
		want             any
	}{
		{"a string stays as it is", "s", "5", "5"},
		{"an empty string", "s", "", ""},
		{"a string that looks like JSON", "s", `{"a":1}`, `{"a":1}`},
		{"a file", "file", "a.txt", "a.txt"},
		{"an integer", "i", " 5 ", num("5")},
		{"an integer with a dot", "i", "5.0", num("5.0")},
		{"a number", "f", "1e-3", num("1e-3")},
		{"a boolean", "b", "true", true},
		{"null", "z", "null", nil},
		{"an object", "o", `{"a":[1]}`, map[string]any{"a": []any{num("1")}}},
		{"an array", "l", `[1,2]`, []any{num("1"), num("2")}},
		{"a nested field behind a reference", "o.deep.i", "7", num("7")},
		{"an unknown field of an open object", "o.other", "7", num("7")},
		{"a field below something untyped", "any.x.y", "text", "text"},
		{"untyped that is JSON", "any", "[1]", []any{num("1")}},
		{"untyped that is not", "any", "hello world", "hello world"},
		{"an enum without a type", "e", "a", "a"},
		{"an enum without a type, a number", "e", "5", num("5")},
		{"a choice of integer and null", "in", "null", nil},
		{"a choice with string is a string", "sn", "null", "null"},
		{"a choice by anyOf", "opt", "3", num("3")},
		{"a field of allOf", "all", "1.5", num("1.5")},
		{"a pattern of names", "x-flag", "false", false},
		{"a free name with a typed value", "map.anything", "3", num("3")},
	}
	for _, c := range good {
		t.Run(c.name, func(t *testing.T) {
			got, err := s.ParseField(c.path, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	bad := []struct{ name, path, text, want, hint string }{
		{"text for an integer", "i", "hunter2", `field "i": expected integer, got text that isn't JSON`, "whole number"},
		{"a fraction for an integer", "i", "1.5", "expected integer, got number", "whole number"},
		{"text for a boolean", "b", "yes", "expected boolean", "true or false"},
		{"text for an object", "o", "hunter2", "expected object", "dotted path"},
		{"an array for an object", "o", "[]", "expected object, got array", ""},
		{"an object for an array", "l", "{}", "expected array, got object", "["},
		{"text for a number", "f", "hunter2", "expected number", "0.5"},
		{"text for null", "z", "x", "expected null", "null"},
		{"a giant number", "f", "1e1000000", "expected number", ""},
		{"a wrong choice", "in", "true", "expected null or integer, got boolean", ""},
		{"an unknown field", "fil", "x", `the contract has no field "fil"`, `did you mean "file"`},
		{"an unknown field that is like none", "qqqqqqqq", "x", "has no field", "any, b, e, f"},
		{"an empty path", "", "x", "empty part", "dots"},
		{"an empty part", "o..i", "x", "empty part", "dots"},
		{"invalid UTF-8", "s", "\xff", "UTF-8", ""},
	}
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			v, err := s.ParseField(c.path, c.text)
			if !fault.Is(err, fault.Input) {
				t.Fatalf("ParseField = %v, %v, want an Input fault", v, err)
			}
			e := fault.Public(err)
			if !strings.Contains(e.Msg, c.want) || !strings.Contains(e.Hint, c.hint) || strings.Contains(e.Msg, "hunter2") {
				t.Errorf("ParseField says %q (%s)", e.Msg, e.Hint)
			}
		})
	}
}

func TestWhatParseFieldReadsValidates(t *testing.T) {
	s := compiled(t, `{"properties":{"o":{"properties":{"i":{"type":"int"}}}}}`)
	v, err := s.ParseField("o.i", "41.0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Payload{}.With("o.i", v)
	if err != nil || string(p.JSON()) != `{"o":{"i":41.0}}` {
		t.Fatalf("With = %s, %v", p.JSON(), err)
	}
	wantFindings(t, s.Validate(p), nil)
}

func TestFieldsOfClosedObjects(t *testing.T) {
	for name, c := range map[string]struct{ schema, path, text, want string }{ // "": it is taken
		"one that another part has":         {`{"additionalProperties":false,"properties":{"a":{}},"allOf":[{"properties":{"b":{"type":"int"}}}]}`, "b", "1", ""},
		"one that two parts lack":           {`{"additionalProperties":false,"properties":{"a":{}},"allOf":[{"properties":{"b":{}}}]}`, "c", "1", "it has a, b"},
		"each name once":                    {`{"additionalProperties":false,"properties":{"a":{}},"allOf":[{"properties":{"a":{}}}]}`, "c", "1", "it has a"},
		"where nothing is allowed":          {`{"properties":{"o":{"additionalProperties":false}}}`, "o.x", "1", "it allows no fields there"},
		"below one that isn't there":        {`{"additionalProperties":false,"properties":{"a":{}}}`, "x.y", "1", "it has a"},
		"one of a pattern":                  {`{"additionalProperties":false,"patternProperties":{"^x":{"type":"int"}}}`, "x1", "1", ""},
		"one of no pattern":                 {`{"additionalProperties":false,"patternProperties":{"^x":{"type":"int"}}}`, "y1", "1", "it allows no fields there"},
		"where any may stand":               {`{"additionalProperties":true,"properties":{"a":{}}}`, "b", "1", ""},
		"where all others are of a form":    {`{"additionalProperties":{"not":{}},"properties":{"a":{}}}`, "b", "1", ""},
		"a name that has to be cut to show": {`{"additionalProperties":false,"properties":{"` + strings.Repeat("k", 300) + `":{}}}`, "b", "1", "it has kkk"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := compiled(t, c.schema).ParseField(c.path, c.text)
			if c.want == "" {
				if err != nil || v != json.Number("1") {
					t.Errorf("%v, %v", v, err)
				}
				return
			}
			if public := fault.Public(err); !fault.Is(err, fault.Input) || !strings.HasPrefix(public.Hint, c.want) || len(public.Hint) > maxShownBytes+20 || !strings.HasPrefix(public.Msg, "the contract has no field ") {
				t.Errorf("%v, %v (%s)", v, err, public.Hint)
			}
		})
	}
}
