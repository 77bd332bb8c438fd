package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	schema07   = `"$schema":"http://json-schema.org/draft-07/schema#",`
	schema2019 = `"$schema":"https://json-schema.org/draft/2019-09/schema",`
	schema2020 = `"$schema":"https://json-schema.org/draft/2020-12/schema",`
)

// A schema of a newer draft and the same by hand in draft-07 say the same of all payloads.
func TestATranslationSaysWhatOneByHandSays(t *testing.T) {
	for _, c := range []struct {
		name, newer, byHand string
		payloads            []string
	}{
		{
			name:   "prefixItems and what follows",
			newer:  `{` + schema2020 + `"properties":{"l":{"prefixItems":[{"type":"int"},{"type":"string"}],"items":{"type":"bool"}}}}`,
			byHand: `{` + schema07 + `"properties":{"l":{"items":[{"type":"int"},{"type":"string"}],"additionalItems":{"type":"bool"}}}}`,
			payloads: []string{
				`{"l":[]}`, `{"l":[1]}`, `{"l":[1,"x",true]}`, `{"l":["x"]}`, `{"l":[1,2]}`, `{"l":[1,"x",true,3]}`, `{"l":{}}`,
			},
		},
		{
			name:     "prefixItems and nothing else",
			newer:    `{` + schema2020 + `"properties":{"l":{"prefixItems":[{"type":"int"}],"items":false}}}`,
			byHand:   `{` + schema07 + `"properties":{"l":{"items":[{"type":"int"}],"additionalItems":false}}}`,
			payloads: []string{`{"l":[]}`, `{"l":[1]}`, `{"l":[1,2]}`, `{"l":["x","y"]}`},
		},
		{
			name:     "prefixItems without a draft",
			newer:    `{"properties":{"l":{"prefixItems":[{"type":"int"}]}}}`,
			byHand:   `{"properties":{"l":{"items":[{"type":"int"}]}}}`,
			payloads: []string{`{"l":[1,"x"]}`, `{"l":["x"]}`},
		},
		{
			name:     "an empty prefix",
			newer:    `{` + schema2020 + `"properties":{"l":{"prefixItems":[],"items":{"type":"int"}}}}`,
			byHand:   `{` + schema07 + `"properties":{"l":{"items":{"type":"int"}}}}`,
			payloads: []string{`{"l":[]}`, `{"l":[1]}`, `{"l":["x"]}`},
		},
		{
			name:     "dependentRequired",
			newer:    `{` + schema2019 + `"dependentRequired":{"a":["b","c"],"d":[]}}`,
			byHand:   `{` + schema07 + `"dependencies":{"a":["b","c"],"d":[]}}`,
			payloads: []string{`{}`, `{"a":1}`, `{"a":1,"b":1}`, `{"a":1,"b":1,"c":1}`, `{"d":1}`},
		},
		{
			name:     "dependentSchemas",
			newer:    `{` + schema2020 + `"dependentSchemas":{"a":{"required":["b"]},"c":false}}`,
			byHand:   `{` + schema07 + `"dependencies":{"a":{"required":["b"]},"c":false}}`,
			payloads: []string{`{}`, `{"a":1}`, `{"a":1,"b":1}`, `{"c":1}`},
		},
		{
			name:     "both kinds of dependency for one field",
			newer:    `{` + schema2020 + `"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"maxProperties":2}},"allOf":[{"required":["z"]}]}`,
			byHand:   `{` + schema07 + `"allOf":[{"required":["z"]},{"dependencies":{"a":["b"]}},{"dependencies":{"a":{"maxProperties":2}}}]}`,
			payloads: []string{`{"z":1}`, `{"a":1}`, `{"a":1,"z":1}`, `{"a":1,"b":1,"z":1}`, `{"a":1,"b":1}`},
		},
		{
			name:     "names under two keywords for one field",
			newer:    `{"dependencies":{"a":["b"]},"dependentRequired":{"a":["c"]}}`,
			byHand:   `{"dependencies":{"a":["b","c"]}}`,
			payloads: []string{`{"a":1}`, `{"a":1,"b":1}`, `{"a":1,"c":1}`, `{"a":1,"b":1,"c":1}`},
		},
		{
			name:     "what stands beside a reference",
			newer:    `{` + schema2020 + `"$defs":{"n":{"type":"int"}},"properties":{"a":{"$ref":"#/$defs/n","minimum":3,"title":"A"}}}`,
			byHand:   `{` + schema07 + `"definitions":{"n":{"type":"int"}},"properties":{"a":{"allOf":[{"$ref":"#/definitions/n"}],"minimum":3}}}`,
			payloads: []string{`{"a":3}`, `{"a":2}`, `{"a":"x"}`, `{"a":2.5}`},
		},
		{
			name:     "a reference beside an allOf",
			newer:    `{` + schema2019 + `"$defs":{"n":{"type":"int"}},"properties":{"a":{"allOf":[{"maximum":5}],"$ref":"#/$defs/n"}}}`,
			byHand:   `{` + schema07 + `"$defs":{"n":{"type":"int"}},"properties":{"a":{"allOf":[{"maximum":5},{"$ref":"#/$defs/n"}]}}}`,
			payloads: []string{`{"a":5}`, `{"a":6}`, `{"a":"x"}`},
		},
		{
			name:     "a reference beside what other fields ask for",
			newer:    `{` + schema2020 + `"$defs":{"o":{"type":"object"}},"properties":{"a":{"$ref":"#/$defs/o","dependentRequired":{"b":["c"]}}}}`,
			byHand:   `{` + schema07 + `"$defs":{"o":{"type":"object"}},"properties":{"a":{"allOf":[{"$ref":"#/$defs/o"}],"dependencies":{"b":["c"]}}}}`,
			payloads: []string{`{"a":{}}`, `{"a":{"b":1}}`, `{"a":{"b":1,"c":1}}`, `{"a":1}`},
		},
		{
			name:     "a reference alone, with annotations",
			newer:    `{` + schema2020 + `"$defs":{"n":{"type":"int"}},"properties":{"a":{"$ref":"#/$defs/n","description":"d","default":1,"deprecated":true,"examples":[1]}}}`,
			byHand:   `{` + schema07 + `"$defs":{"n":{"type":"int"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`,
			payloads: []string{`{"a":5}`, `{"a":"x"}`},
		},
		{
			name:     "contains that asks for one",
			newer:    `{` + schema2020 + `"properties":{"l":{"contains":{"const":1},"minContains":1}}}`,
			byHand:   `{` + schema07 + `"properties":{"l":{"contains":{"const":1}}}}`,
			payloads: []string{`{"l":[1]}`, `{"l":[]}`, `{"l":[2]}`},
		},
		{
			name:     "contains that asks for none",
			newer:    `{` + schema2020 + `"properties":{"l":{"contains":{"const":1},"minContains":0}}}`,
			byHand:   `{` + schema07 + `"properties":{"l":{}}}`,
			payloads: []string{`{"l":[1]}`, `{"l":[]}`, `{"l":[2]}`},
		},
		{
			name:     "a count that a shorter list can't reach",
			newer:    `{` + schema2020 + `"properties":{"l":{"contains":{"const":1},"maxContains":3,"maxItems":2}}}`,
			byHand:   `{` + schema07 + `"properties":{"l":{"contains":{"const":1},"maxItems":2}}}`,
			payloads: []string{`{"l":[1,1]}`, `{"l":[1,1,1]}`, `{"l":[]}`},
		},
		{
			name:     "counts of nothing",
			newer:    `{` + schema2020 + `"properties":{"l":{"minContains":3,"maxContains":4}}}`,
			byHand:   `{` + schema07 + `"properties":{"l":{}}}`,
			payloads: []string{`{"l":[]}`, `{"l":[1]}`},
		},
		{
			name:     "contents are not looked into",
			newer:    `{` + schema2020 + `"properties":{"c":{"type":"string","contentEncoding":"base64","contentMediaType":"application/json","contentSchema":{"type":"nonsense"}}}}`,
			byHand:   `{` + schema07 + `"properties":{"c":{"type":"string"}}}`,
			payloads: []string{`{"c":"!"}`, `{"c":1}`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			newer, byHand := compiled(t, c.newer), compiled(t, c.byHand)
			for _, raw := range c.payloads {
				p := payload(t, raw)
				if diff := cmp.Diff(byHand.Validate(p), newer.Validate(p)); diff != "" {
					t.Errorf("%s: %s", raw, diff)
				}
			}
		})
	}
}

func TestATranslationFindsFilesToo(t *testing.T) {
	for _, c := range []struct {
		name, schema, payload string
		want                  []string
	}{
		{
			name:    "in a prefix and behind it",
			schema:  `{"properties":{"l":{"prefixItems":[{"type":"int"},` + file + `],"items":` + file + `}}}`,
			payload: `{"l":[1,"a","b"]}`,
			want:    []string{"/l/1=a", "/l/2=b"},
		},
		{
			name:    "where a field asks for it",
			schema:  `{"dependentSchemas":{"k":{"properties":{"f":` + file + `}}}}`,
			payload: `{"k":1,"f":"x"}`,
			want:    []string{"/f=x"},
		},
		{
			name:    "beside a reference",
			schema:  `{` + schema2020 + `"$defs":{"short":{"maxLength":9}},"properties":{"f":{"$ref":"#/$defs/short","type":"string","format":"file_path"}}}`,
			payload: `{"f":"x"}`,
			want:    []string{"/f=x"},
		},
		{
			name:    "behind one",
			schema:  `{` + schema2020 + `"$defs":{"f":` + file + `},"properties":{"f":{"$ref":"#/$defs/f","maxLength":9}}}`,
			payload: `{"f":"x"}`,
			want:    []string{"/f=x"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, ref := range compiled(t, c.schema).FileRefs(payload(t, c.payload)) {
				got = append(got, ref.Pointer+"="+ref.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEachDraftKnowsItsKeywords(t *testing.T) {
	drafts := map[string]string{
		"04": `"$schema":"http://json-schema.org/draft-04/schema#",`, "06": `"$schema":"http://json-schema.org/draft-06/schema#",`,
		"07": schema07, "2019": schema2019, "2020": schema2020, "none": "",
	}
	for name, c := range map[string]struct {
		keyword string
		takenBy string
	}{
		"prefixItems":          {`"prefixItems":[{}]`, "2020 none"},
		"a list under items":   {`"items":[{}]`, "04 06 07 2019 none"},
		"additionalItems":      {`"additionalItems":{}`, "04 06 07 2019 none"},
		"dependentRequired":    {`"dependentRequired":{"a":["b"]}`, "2019 2020 none"},
		"dependentSchemas":     {`"dependentSchemas":{"a":{}}`, "2019 2020 none"},
		"dependencies":         {`"dependencies":{"a":["b"]}`, "04 06 07 2019 2020 none"},
		"minContains":          {`"contains":{},"minContains":1`, "2019 2020 none"},
		"$defs":                {`"$defs":{"a":{}}`, "04 06 07 2019 2020 none"},
		"definitions":          {`"definitions":{"a":{}}`, "04 06 07 2019 2020 none"},
		"a boolean bound":      {`"minimum":1,"exclusiveMinimum":true`, "04"},
		"unevaluated anything": {`"unevaluatedProperties":true`, ""},
		"$anchor":              {`"$anchor":"a"`, ""},
	} {
		for draft, declared := range drafts {
			t.Run(name+" in "+draft, func(t *testing.T) {
				s, found := Compile([]byte(`{` + declared + c.keyword + `}`))
				if taken := s != nil && len(found) == 0; taken != strings.Contains(c.takenBy, draft) {
					t.Errorf("taken: %v, %v", taken, found)
				}
				for _, f := range found {
					if f.Hint == "" || f.Pointer == "" {
						t.Errorf("%v helps nobody", f)
					}
				}
			})
		}
	}
}

func TestSchemasOfAllDraftsByTheirNames(t *testing.T) {
	for uri, known := range map[string]bool{
		"http://json-schema.org/draft-04/schema#":             true,
		"http://json-schema.org/draft-06/schema":              true,
		"https://json-schema.org/draft-07/schema#":            true,
		"https://json-schema.org/draft/2019-09/schema":        true,
		"https://json-schema.org/draft/2020-12/schema":        true,
		"https://json-schema.org/draft/2020-12/schema#":       true,
		"http://json-schema.org/schema#":                      false,
		"http://json-schema.org/draft-05/schema#":             false,
		"https://json-schema.org/draft/next/schema":           false,
		"https://json-schema.org/draft/2020-12/vocab/content": false,
		"https://example.com/draft-07/schema#":                false,
		"":                                                    false,
	} {
		t.Run(uri, func(t *testing.T) {
			s, found := Compile([]byte(`{"$schema":"` + uri + `"}`))
			if (s != nil) != known {
				t.Errorf("%v", found)
			}
		})
	}
	t.Run("what isn't a name", func(t *testing.T) {
		_, found := Compile([]byte(`{"$schema":7}`))
		wantFindings(t, found, []string{"/$schema|expected a string, got integer|draft-07"})
	})
}

func TestASideMayHaveItsOwnDraft(t *testing.T) {
	const sides = `"input":{` + schema2020 + `"properties":{"l":{"prefixItems":[{"type":"int"}]}}},"output":{"properties":{"l":{"items":[{"type":"int"}],"additionalItems":false}}}`
	contract, found := Parse([]byte(`{` + schema07 + sides + `}`))
	if contract == nil || len(found) > 0 {
		t.Fatal(found)
	}
	wantFindings(t, contract.Input.Validate(payload(t, `{"l":["x",1]}`)), []string{"/l/0|expected integer, got string|"})
	wantFindings(t, contract.Output.Validate(payload(t, `{"l":[1,1]}`)), []string{"/l|more items than|"})
	_, found = Parse([]byte(`{` + schema2020 + sides + `}`))
	wantFindings(t, found, []string{"/output/properties/l/items|one schema, not a list|prefixItems"})
}

func TestWhatADraftIgnoresBesideAReference(t *testing.T) {
	const rest = `"$defs":{"n":{"type":"int"}},"properties":{"a":{"$ref":"#/$defs/n","minimum":3}}}`
	for name, c := range map[string]struct {
		schema  string
		warned  []string
		invalid []string
	}{
		"draft-07":     {`{` + schema07 + rest, []string{`/properties/a/minimum|"minimum" stands beside $ref|allOf`}, nil},
		"no draft":     {`{` + rest, []string{`/properties/a/minimum|"minimum" stands beside $ref|allOf`}, nil},
		"2019-09":      {`{` + schema2019 + rest, nil, []string{"/a|must be at least 3|"}},
		"2020-12":      {`{` + schema2020 + rest, nil, []string{"/a|must be at least 3|"}},
		"a wrong type": {`{` + schema2020 + `"properties":{"a":{"$ref":7,"minimum":3}}}`, []string{`/properties/a/$ref|expected a string, got integer|#/definitions`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, found := Compile([]byte(c.schema))
			wantFindings(t, found, c.warned)
			if len(fault.Errors(found)) == 0 {
				wantFindings(t, s.Validate(payload(t, `{"a":1}`)), c.invalid)
			}
		})
	}
}

func TestTwoSchemasForOneFieldAreRefused(t *testing.T) {
	_, found := Compile([]byte(`{"dependencies":{"a":{}},"dependentSchemas":{"a":{}}}`))
	wantFindings(t, found, []string{`/dependentSchemas/a|already|allOf`})
	_, found = Compile([]byte(`{"dependentRequired":{"a":{}},"dependentSchemas":[]}`))
	wantFindings(t, found, []string{`/dependentRequired/a|expected a list of field names, got object|`, `/dependentSchemas|expected an object, got array|`})
}

func TestCirclesThroughNewerKeywordsAreRefused(t *testing.T) {
	for name, definition := range map[string]string{
		"beside a reference": `{"$ref":"#/$defs/a","minimum":1}`,
		"dependentSchemas":   `{"dependentSchemas":{"x":{"$ref":"#/$defs/a"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, found := within2s(t, `{`+schema2020+`"$defs":{"a":`+definition+`},"input":{"properties":{"f":{"$ref":"#/$defs/a"}}},"output":{}}`)
			if len(found) != 1 || !strings.Contains(found[0].Message, "circle") {
				t.Errorf("%v", found)
			}
		})
	}
}

func TestBooleansBesideBoundsAsDraft04HasThem(t *testing.T) {
	const draft4 = `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"v":`
	for name, c := range map[string]struct{ schema, holds, breaks, says string }{
		"an exclusive minimum":       {`{"minimum":1,"exclusiveMinimum":true}`, "1.1", "1", "must be greater than 1"},
		"an exclusive maximum":       {`{"maximum":1,"exclusiveMaximum":true}`, "0.9", "1", "must be less than 1"},
		"one that isn't":             {`{"minimum":1,"exclusiveMinimum":false}`, "1", "0.9", "must be at least 1"},
		"one without a bound":        {`{"exclusiveMinimum":true,"maximum":3}`, "-9", "4", "must be at most 3"},
		"both ends, one of them out": {`{"minimum":1,"maximum":3,"exclusiveMaximum":true}`, "1", "3", "must be less than 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := compiled(t, draft4+c.schema+`}}`)
			wantFindings(t, s.Validate(payload(t, `{"v":`+c.holds+`}`)), nil)
			wantFindings(t, s.Validate(payload(t, `{"v":`+c.breaks+`}`)), []string{"/v|" + c.says + "|"})
		})
	}
}
