package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestFindingsMarkWhatCameOutOfThePayload(t *testing.T) {
	for _, c := range []struct {
		name, schema, payload string
		want                  []string // the foreign part of each finding
	}{
		{
			name:    "a field that the contract doesn't have",
			schema:  `{"additionalProperties":false}`,
			payload: `{"Tweety":1}`,
			want:    []string{`"Tweety"`},
		},
		{
			name:    "the name of a field",
			schema:  `{"propertyNames":{"maxLength":3}}`,
			payload: `{"Tweety":1}`,
			want:    []string{"", `"Tweety"`},
		},
		{
			name:    "a field that the contract wants is its own word",
			schema:  `{"required":["a"]}`,
			payload: `{"Tweety":1}`,
			want:    []string{""},
		},
		{
			name:    "so is one that another one asks for",
			schema:  `{"dependencies":{"Tweety":["a"]}}`,
			payload: `{"Tweety":1}`,
			want:    []string{""},
		},
		{
			name:    "a value is never shown",
			schema:  `{"properties":{"a":{"enum":["x"]},"b":{"const":1},"c":{"pattern":"^x"},"d":{"type":"int"},"e":{"format":"date"}}}`,
			payload: `{"a":"Tweety","b":"Tweety","c":"Tweety","d":"Tweety","e":"Tweety"}`,
			want:    []string{"", "", "", "", ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range compiled(t, c.schema).Validate(payload(t, c.payload)) {
				got = append(got, f.Foreign)
				e := fault.New(fault.Input, "refused").WithFindings([]fault.Finding{f})
				told := e.Without(func(string) bool { return false }).Findings[0]
				if strings.Contains(told.Message+told.Hint, "Tweety") {
					t.Errorf("%q is told", told.Message)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARefusedPayloadMarksItsNames(t *testing.T) {
	_, err := Decode([]byte(`{"a":{"Tweety":1,"Tweety":2}}`), 0)
	told := fault.Public(err).Without(func(string) bool { return false })
	if want := `the payload is not valid JSON: line 1, column 18: the field "*" stands twice in one object`; told.Msg != want {
		t.Errorf("%s, want %s", told.Msg, want)
	}
	if len(told.Findings) != 1 || told.Findings[0].Message != `the field "*" stands twice in one object` {
		t.Errorf("%v", told.Findings)
	}
	_, err = Decode([]byte(`{"a":1]`), 0)
	if shown, told := fault.Public(err).Msg, fault.Public(err).Without(func(string) bool { return false }).Msg; shown != told {
		t.Errorf("%s became %s", shown, told)
	}
}

func TestFindingsComeInTheOrderOfTheirPlaces(t *testing.T) {
	s := compiled(t, `{"properties":{"b":{"type":"int","minimum":5},"a":{"items":{"type":"bool"}},"c":{"minimum":2,"multipleOf":2}},"required":["z"]}`)
	found := s.Validate(payload(t, `{"c":1,"a":[1,true,2],"b":"x"}`))
	want := []string{
		`|required field "z" is missing`,
		"/a/0|expected boolean, got integer",
		"/a/2|expected boolean, got integer",
		"/b|expected integer, got string",
		"/c|must be a multiple of 2",
		"/c|must be at least 2",
	}
	if diff := cmp.Diff(want, shortly(found)); diff != "" {
		t.Error(diff)
	}
}

func TestAlternativesTellOfTheClosestOne(t *testing.T) {
	s := compiled(t, `{"properties":{"shape":{"anyOf":[
		{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
		{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number","minimum":0}},"required":["kind","side"]},
		{"type":"null"}
	]}}}`)
	for raw, want := range map[string][]string{
		`{"shape":null}`:                           {},
		`{"shape":{"kind":"square","side":1}}`:     {},
		`{"shape":{"kind":"square","side":-1}}`:    {"/shape|matches none of the alternatives (anyOf)", "/shape/side|must be at least 0"},
		`{"shape":{"kind":"square","side":"big"}}`: {"/shape|matches none of the alternatives (anyOf)", "/shape/side|expected number, got string"},
	} {
		t.Run(raw, func(t *testing.T) {
			if diff := cmp.Diff(want, shortly(s.Validate(payload(t, raw)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatTheLibraryCantDoIsSaid(t *testing.T) {
	broken := &Schema{root: newNode(0, "")} // without what was compiled: the library dereferences nil
	found := broken.Validate(payload(t, `{}`))
	wantFindings(t, found, []string{"|the payload could not be checked against the contract|simplify"})
	for name, document := range map[string]any{
		"a document that is none":          7,
		"a reference that leads nowhere":   map[string]any{"$ref": "#/$defs/none"},
		"a reference to another document":  map[string]any{"$ref": "other.json"},
		"a keyword of the wrong type":      map[string]any{"properties": "x"},
		"an expression that can't be read": map[string]any{"pattern": "("},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := engineFor(document); err == nil {
				t.Errorf("engineFor = %v", s)
			}
		})
	}
}

func TestMistakesAreListedUpToALimit(t *testing.T) {
	var properties []string
	for i := range MaxFindings + 50 {
		properties = append(properties, fmt.Sprintf(`"p%03d":{"type":"nonsense"}`, i))
	}
	_, found := Parse([]byte(object(strings.Join(properties, ","))))
	if len(found) != MaxFindings+1 {
		t.Fatalf("%d findings", len(found))
	}
	last := found[MaxFindings]
	if last.Message != "there are more problems than these" || last.File != FileName {
		t.Errorf("the last one is %v", last)
	}
	if !slices.IsSortedFunc(found[:MaxFindings], func(a, b fault.Finding) int { return strings.Compare(a.Pointer, b.Pointer) }) {
		t.Error("they are in no order")
	}
}

func TestPointersIntoTheContractAreCut(t *testing.T) {
	long := strings.Repeat("k", 3000)
	_, found := Compile([]byte(`{"properties":{"` + long + `":{"type":"nonsense"}}}`))
	if len(found) != 1 || len(found[0].Pointer) > 2100 || !strings.HasSuffix(found[0].Pointer, "…") {
		t.Errorf("%d findings, the pointer has %d bytes", len(found), len(found[0].Pointer))
	}
}

func TestHintsNameWhatWasMeant(t *testing.T) {
	for _, c := range []struct{ name, schema, pointer, hint string }{
		{"a misspelt keyword", `{"propertys":{}}`, "/propertys", `did you mean "properties"?`},
		{"a misspelt newer one", `{"prefixItem":[]}`, "/prefixItem", `did you mean "prefixItems"?`},
		{"OpenAPI's nullable", `{"type":"string","nullable":true}`, "/nullable", `write "type": ["string", "null"]`},
		{"a number that means nothing", `{"weight":7}`, "/weight", "remove it"},
		{"Python's None", `{"type":"None"}`, "/type", `write "null"`},
		{"Python's str", `{"type":"str"}`, "/type", `write "string"`},
		{"a type that is like none", `{"type":"qqqqqqq"}`, "/type", "use one of them"},
		{"an alias that is misspelt", `{"type":"boolen"}`, "/type", `did you mean "boolean"?`},
		{"a format that isn't known", `{"type":"string","format":"qqqqqqq"}`, "/format", "the formats that are checked are file_path, date"},
		{"a file by another name", `{"type":"string","format":"file"}`, "/format", `did you mean "file_path"?`},
		{"a reference to a name", `{"$ref":"Address"}`, "/$ref", `copy the schema into "definitions"`},
		{"an id further down", `{"properties":{"a":{"id":"x"}}}`, "/properties/a/id", `"definitions" and "$ref"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, found := Compile([]byte(c.schema))
			if len(found) != 1 || found[0].Pointer != c.pointer || !strings.Contains(found[0].Hint, c.hint) {
				t.Errorf("%v, want a hint with %s at %s", found, c.hint, c.pointer)
			}
		})
	}
}

func TestWarningsStopNothing(t *testing.T) {
	s, found := Compile([]byte(`{"properties":{"a":{"type":"int","colour":"red","format":"rgb"}}}`))
	if s == nil || len(found) != 2 || len(fault.Errors(found)) != 0 {
		t.Fatalf("%v, %v", s, found)
	}
	wantFindings(t, s.Validate(payload(t, `{"a":"x"}`)), []string{"/a|expected integer, got string|"})
}

func TestErrorsAreFaults(t *testing.T) {
	for name, err := range map[string]error{
		"a payload that is none": func() error { _, err := Decode(nil, 0); return err }(),
		"a name that is refused": func() error { _, err := CleanName("../x", StageInput); return err }(),
		"a path that is none":    func() error { _, err := (Payload{}).With("", 1); return err }(),
	} {
		t.Run(name, func(t *testing.T) {
			var known *fault.Error
			if !errors.As(err, &known) || known.Kind != fault.Input || known.Hint == "" {
				t.Errorf("%v", err)
			}
		})
	}
}
