package mcp

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/xeipuuv/gojsonschema"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// readers reads a schema as both drafts do: each says whether it takes a document.
func readers(t *testing.T, schema []byte) map[string]func(doc any) bool {
	t.Helper()
	if strings.Contains(string(schema), `"$schema"`) {
		t.Errorf("it names a draft: %s", schema)
	}
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect, loader.Draft, loader.Validate = false, gojsonschema.Draft7, true
	old, err := loader.Compile(gojsonschema.NewBytesLoader(schema))
	if err != nil {
		t.Fatalf("draft-07: %v\n%s", err, schema)
	}
	var parsed jsonschema.Schema
	must(t, json.Unmarshal(schema, &parsed))
	newer, err := parsed.Resolve(&jsonschema.ResolveOptions{})
	if err != nil {
		t.Fatalf("2020-12: %v\n%s", err, schema)
	}
	return map[string]func(any) bool{
		"draft-07": func(doc any) bool {
			result, err := old.Validate(gojsonschema.NewGoLoader(doc))
			must(t, err)
			return result.Valid()
		},
		"2020-12": func(doc any) bool { return newer.Validate(doc) == nil },
	}
}

func TestGeneratedContractsReadAlikeInBothDrafts(t *testing.T) {
	for seed := range uint64(500) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		raw, err := json.Marshal(map[string]any{"input": g.object(3), "output": g.object(2), "definitions": map[string]any{"some": g.object(1)}})
		must(t, err)
		known, findings := contract.Parse(raw)
		if known == nil {
			t.Fatalf("seed %d: %v\n%s", seed, findings, raw)
		}
		for side, schema := range map[string]*contract.Schema{"input": known.Input, "output": known.Output} {
			plain, err := toolSchema(schema.Plain(), "")
			must(t, err)
			for draft, takes := range readers(t, plain) {
				for range 20 {
					doc := g.document(3)
					text, err := json.Marshal(doc)
					must(t, err)
					payload, err := contract.Decode(text, 0)
					must(t, err)
					if want := len(schema.Validate(payload)) == 0; takes(doc) != want {
						t.Fatalf("seed %d, %s by %s: the contract says %v of %s\n%s\n%s", seed, side, draft, want, text, raw, plain)
					}
				}
			}
		}
	}
}

// generator makes contracts, and documents that some of them take.
type generator struct{ *rand.Rand }

var fields = []string{"a", "b", "c", "d"}

func (g generator) object(depth int) map[string]any {
	properties := map[string]any{}
	for _, name := range fields {
		if g.IntN(3) > 0 {
			properties[name] = g.schema(depth - 1)
		}
	}
	m := map[string]any{"type": []string{"object", "dict"}[g.IntN(2)], "properties": properties}
	if g.IntN(2) == 0 {
		m["required"] = []any{fields[g.IntN(4)]}
	}
	if g.IntN(3) == 0 {
		m["additionalProperties"] = g.IntN(2) == 0
	}
	switch g.IntN(8) {
	case 0:
		m["dependencies"] = map[string]any{"a": []any{"b"}}
	case 1:
		m["dependencies"] = map[string]any{"a": map[string]any{"required": []any{"c"}}}
	case 2:
		m["dependentRequired"] = map[string]any{"b": []any{"d"}}
	case 3:
		m["minProperties"] = g.IntN(3)
	}
	return m
}

func (g generator) schema(depth int) any {
	if depth > 0 {
		switch g.IntN(6) {
		case 0:
			return g.object(depth)
		case 1:
			return map[string]any{"type": "list", "items": g.schema(depth - 1), "minItems": g.IntN(2), "uniqueItems": g.IntN(2) == 0}
		case 2:
			return map[string]any{"anyOf": []any{g.schema(depth - 1), g.schema(depth - 1)}}
		case 3:
			return map[string]any{"$ref": "#/definitions/some", "description": "told"}
		}
	}
	switch g.IntN(7) {
	case 0:
		return map[string]any{"type": "int", "minimum": g.IntN(3), "exclusiveMaximum": 3 + g.IntN(3)}
	case 1:
		return map[string]any{"type": "string", "minLength": g.IntN(3), "pattern": "^[a-z]*$"}
	case 2:
		return map[string]any{"type": "bool"}
	case 3:
		return map[string]any{"enum": []any{1, "x", nil, true}}
	case 4:
		return map[string]any{"const": g.IntN(2)}
	case 5:
		return map[string]any{"type": []any{"float", "null"}, "x-own": 7, "multipleOf": 0.5}
	}
	return map[string]any{"not": map[string]any{"type": "string"}, "contentEncoding": "base64"}
}

func (g generator) document(depth int) map[string]any {
	m := map[string]any{}
	for _, name := range append(fields, "e") {
		if g.IntN(2) == 0 {
			m[name] = g.value(depth - 1)
		}
	}
	return m
}

func (g generator) value(depth int) any {
	switch n := g.IntN(9); {
	case n == 0 && depth > 0:
		return g.document(depth)
	case n == 1 && depth > 0:
		return []any{g.value(depth - 1), g.value(depth - 1)}
	case n == 2:
		return nil
	case n == 3:
		return g.IntN(2) == 0
	case n < 6:
		return []any{"", "x", "word", "X"}[g.IntN(4)]
	}
	return []any{0.0, 1.0, 2.0, 3.0, 0.5, -1.0}[g.IntN(6)]
}

func TestWhatOneDraftAloneHasIsSaidInOtherWords(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","properties":{"p":{"items":[{"type":"int"},{"type":"string"}]}}}`:                                `{"properties":{"p":{}},"type":"object"}`,
		`{"type":"object","properties":{"p":{"items":[{"type":"int"}],"additionalItems":false,"maxItems":9}}}`:             `{"properties":{"p":{"items":{"anyOf":[{"type":"integer"}]},"maxItems":1}},"type":"object"}`,
		`{"type":"object","properties":{"p":{"prefixItems":[{"type":"int"}],"items":{"type":"string"}}}}`:                  `{"properties":{"p":{"items":{"anyOf":[{"type":"integer"},{"type":"string"}]}}},"type":"object"}`,
		`{"type":"object","properties":{"f":{"type":"string","format":"file_path","maxLength":9,"description":"A PDF."}}}`: `{"properties":{"f":{"description":"A PDF. HINT","type":"string"}},"type":"object"}`,
		`{"type":"object","properties":{"f":{"type":"string","format":"file_path","pattern":"^a"}}}`:                       `{"properties":{"f":{"description":"HINT","type":"string"}},"type":"object"}`,
		`{"properties":{"x":{"type":"string","format":"date","x-mcp-header":"A B"}}}`:                                      `{"properties":{"x":{"format":"date","type":"string"}},"type":"object"}`,
	} {
		known, findings := contract.Parse([]byte(`{"input":` + in + `,"output":{}}`))
		if known == nil {
			t.Fatal(findings)
		}
		got, err := toolSchema(known.Input.Plain(), "HINT")
		must(t, err)
		if string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestEveryExampleIsATool(t *testing.T) {
	f := newFake()
	found, err := filepath.Glob("../../../examples/capsules/*/schema.json")
	must(t, err)
	for _, at := range found {
		raw, err := os.ReadFile(at)
		must(t, err)
		f.add(filepath.Base(filepath.Dir(at)), string(raw))
	}
	s := New(f, Options{})
	lists := map[string]bool{}
	for range 2 {
		session, _ := connect(t, ways["http"](t, s), "2025-06-18")
		result, err := session.ListTools(trusted.Context(t), nil)
		must(t, err)
		raw, err := json.Marshal(result)
		must(t, err)
		lists[string(raw)] = true
		for _, tool := range result.Tools {
			if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(tool.Name) || tool.Description == "" {
				t.Errorf("%+v", tool)
			}
			for _, schema := range []any{tool.InputSchema, tool.OutputSchema} {
				raw, err := json.Marshal(schema)
				must(t, err)
				readers(t, raw)
			}
		}
		if len(result.Tools) != len(found) || len(found) < 10 {
			t.Errorf("%d of %d", len(result.Tools), len(found))
		}
	}
	if len(lists) != 1 {
		t.Error("the list is not the same twice")
	}
}

func TestUnitsThatAreNoTools(t *testing.T) {
	f := newFake("good", "a.b", "a_b", "broken", "refused", "server")
	f.units[3].Problem = &api.UnitProblem{Message: "bad"}
	f.units[4].Policy.Refusal = &api.UnitRefusal{Message: "no"}
	f.units[5].Kind = kindMCP
	var log strings.Builder
	s := New(f, Options{Logger: textLogger(&log)})
	for range 2 {
		must(t, s.Refresh(trusted.Context(t)))
	}
	var names []string
	for name, tool := range s.catalogue.tools {
		names = append(names, name+"="+tool.unit)
	}
	if len(names) != 2 || s.catalogue.find("a_b").unit != "a.b" || strings.Count(log.String(), "two units make a tool of one name") != 1 {
		t.Errorf("%v %s", names, log.String())
	}
	only := New(f, Options{Units: []string{"good", "missing"}, Logger: textLogger(&log)})
	for range 2 {
		must(t, only.Refresh(trusted.Context(t)))
	}
	if strings.Count(log.String(), "unit=missing") != 1 {
		t.Errorf("of a unit that isn't there: %s", log.String())
	}
	granted := New(f, Options{Tools: []Tool{{Name: "own", Unit: "a.b", Description: "mine"}}})
	must(t, granted.Refresh(trusted.Context(t)))
	if len(only.catalogue.tools) != 1 || len(granted.catalogue.tools) != 1 || granted.catalogue.find("own").Description != "mine" {
		t.Error(fmt.Sprint(only.catalogue.tools, granted.catalogue.tools))
	}
}
