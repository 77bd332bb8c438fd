package contract

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xeipuuv/gojsonschema"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// compiled compiles a schema that a test wrote.
func compiled(t testing.TB, raw string) *Schema {
	t.Helper()
	s, found := Compile([]byte(raw))
	if s == nil {
		t.Fatalf("Compile: %v", found)
	}
	return s
}

func TestValidateSaysWhatIsWrong(t *testing.T) {
	cases := []struct {
		name, schema, payload string
		want                  []string // "pointer|message|part of the hint"
	}{
		{"nothing is wrong", `{"properties":{"a":{"type":"int"}}}`, `{"a":1,"b":2}`, nil},
		{"1.0 and 1e2 are integers", `{"additionalProperties":{"type":"int"}}`, `{"a":1.0,"b":1e2,"c":-0}`, nil},
		{"an integer is a number", `{"properties":{"a":{"type":"float"}}}`, `{"a":1}`, nil},
		{"a wrong type", `{"properties":{"a":{"type":"int"}}}`, `{"a":"x"}`, []string{"/a|expected integer, got string|"}},
		{"a fraction", `{"properties":{"a":{"type":"int"}}}`, `{"a":1.5}`, []string{"/a|expected integer, got number|"}},
		{"null", `{"properties":{"a":{"type":["string","int"]}}}`, `{"a":null}`, []string{"/a|expected integer or string, got null|"}},
		{"a missing field", `{"required":["a","b"]}`, `{"b":1}`, []string{`|required field "a" is missing|`}},
		{"a missing field further down", `{"properties":{"o":{"required":["a"]}}}`, `{"o":{}}`, []string{`/o|required field "a" is missing|`}},
		{"an unexpected field", `{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"x/y":2}`, []string{`/x~1y|unexpected field "x/y"|spelling`}},
		{
			"names with slashes, tildes, dots and spaces", `{"additionalProperties":{"additionalProperties":{"type":"int"}}}`, `{"a/b":{"c~d":""},"e.f":{"":"", "g h":""}}`,
			[]string{"/a~1b/c~0d|expected integer, got string|", "/e.f/|expected integer, got string|", "/e.f/g h|expected integer, got string|"},
		},
		{"items", `{"properties":{"a":{"items":{"type":"bool"}}}}`, `{"a":[true,1,{}]}`, []string{"/a/1|expected boolean, got integer|", "/a/2|expected boolean, got object|"}},
		{"a tuple with too much", `{"properties":{"a":{"items":[{"type":"int"}],"additionalItems":false}}}`, `{"a":["x",2]}`, []string{"/a|has more items than the contract describes|", "/a/0|expected integer, got string|"}},
		{"enum", `{"properties":{"a":{"enum":["s","m",3]}}}`, `{"a":"hunter2"}`, []string{`/a|is not one of the allowed values: "s", "m", 3|`}},
		{"const", `{"properties":{"a":{"const":"x"}}}`, `{"a":"hunter2"}`, []string{`/a|is not the allowed value: "x"|`}},
		{"bounds", `{"additionalProperties":{"minimum":0,"maximum":10,"multipleOf":2}}`, `{"a":-2,"b":12,"c":3}`, []string{"/a|must be at least 0|", "/b|must be at most 10|", "/c|must be a multiple of 2|"}},
		{"exclusive bounds", `{"additionalProperties":{"exclusiveMinimum":0,"exclusiveMaximum":0.5}}`, `{"a":0,"b":0.5}`, []string{"/a|must be greater than 0|", "/b|must be less than 0.5|"}},
		{"draft-04's exclusive bounds", `{"$schema":"http://json-schema.org/draft-04/schema#","additionalProperties":{"minimum":0,"exclusiveMinimum":true}}`, `{"a":0}`, []string{"/a|must be greater than 0|"}},
		{"lengths in characters", `{"additionalProperties":{"minLength":2,"maxLength":3}}`, `{"a":"é","b":"éééé","c":"ééé"}`, []string{"/a|is too short: at least 2 characters|", "/b|is too long: at most 3 characters|"}},
		{
			"counts", `{"properties":{"a":{"minItems":1},"b":{"maxItems":1},"c":{"minProperties":1},"d":{"maxProperties":0}}}`, `{"a":[],"b":[1,2],"c":{},"d":{"x":1}}`,
			[]string{"/a|has too few items: at least 1|", "/b|has too many items: at most 1|", "/c|has too few fields: at least 1|", "/d|has too many fields: at most 0|"},
		},
		{"a pattern", `{"properties":{"a":{"pattern":"^[a-z]+$"}}}`, `{"a":"HUNTER2"}`, []string{"/a|does not match the pattern ^[a-z]+$|"}},
		{
			"formats", `{"properties":{"a":{"type":"string","format":"date"},"b":{"type":"string","format":"email"},"c":{"type":"string","format":"uri"}}}`, `{"a":"1.2.2003","b":"x","c":"x"}`,
			[]string{"/a|is not a valid date|2006-01-02", "/b|is not a valid email|name@", "/c|is not a valid uri|https"},
		},
		{"equal items", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,2,1.0]}`, []string{"/a|items 0 and 2 are equal, but all must differ|"}},
		{"contains", `{"properties":{"a":{"contains":{"type":"int"}}}}`, `{"a":["x"]}`, []string{"/a|no item is of the form that one must have|", "/a/0|expected integer, got string|"}},
		{"not", `{"properties":{"a":{"not":{"type":"int"}}}}`, `{"a":1}`, []string{"/a|is of a form that the contract excludes|"}},
		{"false", `{"properties":{"a":false}}`, `{"a":1}`, []string{"/a|is not allowed by the contract|"}},
		{"names", `{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, []string{`|is too long: at most 1 characters|`, `|the name of field "ab" is not allowed|name`}},
		{"dependencies", `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1,"c":1}`, []string{`|field b is required beside another field that is there|`, `|required field "d" is missing|`}},
		{"allOf without a word of its own", `{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, []string{`|required field "a" is missing|`, `|required field "b" is missing|`}},
		{"anyOf shows the closest", `{"properties":{"a":{"anyOf":[{"type":"int"},{"type":"string","minLength":2}]}}}`, `{"a":"x"}`, []string{"/a|is too short: at least 2 characters|", "/a|matches none of the alternatives (anyOf)|closest"}},
		{"oneOf that matches twice", `{"properties":{"a":{"oneOf":[{"type":"int"},{"type":"float"}]}}}`, `{"a":1}`, []string{"/a|must match exactly one of the alternatives (oneOf)|"}},
		{"if, then, else", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{}`, []string{`|required field "c" is missing|`}},
		{"the same thing twice is said once", `{"allOf":[{"required":["a"]},{"required":["a"]}]}`, `{}`, []string{`|required field "a" is missing|`}},
		{"what stands beside a reference is ignored", `{"definitions":{"x":{"type":"int"}},"properties":{"a":{"$ref":"#/definitions/x","minimum":5}}}`, `{"a":1}`, nil},
		{
			"a field named $ref", `{"properties":{"$ref":{"type":"int"},"$id":{"type":"int"},"const":{"properties":{"$ref":{"type":"int"}}}}}`, `{"$ref":"x","$id":"x","const":{"$ref":"y"}}`,
			[]string{"/$id|expected integer, got string|", "/$ref|expected integer, got string|", "/const/$ref|expected integer, got string|"},
		},
		{"file_path is any string here", `{"properties":{"a":{"type":"string","format":"file_path"},"b":{"type":"string","format":"file_path"}}}`, `{"a":"../x","b":1}`, []string{"/b|expected string, got integer|"}},
		{"an unknown format is not checked", `{"properties":{"a":{"type":"string","format":"nope"}}}`, `{"a":"x"}`, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found := compiled(t, c.schema).Validate(payload(t, c.payload))
			wantFindings(t, found, c.want)
			for i, f := range found {
				if i < len(c.want) && f.Message != strings.Split(c.want[i], "|")[1] {
					t.Errorf("message %q", f.Message)
				}
				if strings.Contains(strings.ToLower(f.String()), "hunter2") {
					t.Errorf("finding %v shows a value", f)
				}
			}
		})
	}
}

func TestTheZeroPayloadIsValidatedAsAnEmptyObject(t *testing.T) {
	wantFindings(t, compiled(t, `{"type":"dict","required":["a"]}`).Validate(Payload{}), []string{`|required field "a" is missing|`})
}

func TestShortNamesWorkWhereverASchemaStands(t *testing.T) {
	s := compiled(t, `{"$defs":{"d":{"type":"int"}},"patternProperties":{"^p":{"type":"list"}},"additionalProperties":{"type":"bool"},
		"dependencies":{"z":{"properties":{"y":{"type":"float"}}}},
		"properties":{"y":{},"z":{},"r":{"$ref":"#/$defs/d"},"i":{"items":{"type":"dict"}},"t":{"items":[{"type":"int"}],"additionalItems":{"type":"bool"}},"o":{"oneOf":[{"type":"int"},{"type":"list"}]}}}`)
	wantFindings(t, s.Validate(payload(t, `{"p":1,"x":1,"z":1,"y":"","r":"","i":[1],"t":["",1],"o":[]}`)), []string{
		"/i/0|expected object, got integer|", "/p|expected array, got integer|", "/r|expected integer, got string|",
		"/t/0|expected integer, got string|", "/t/1|expected boolean, got integer|", "/x|expected boolean, got integer|", "/y|expected number, got string|",
	})
}

func TestLongThingsAreCutInMessages(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"enum":["`+strings.Repeat("x", 5000)+`"]},"b":{"pattern":"\u001b[31m]"}},"additionalProperties":false}`)
	key := strings.Repeat("k", 4000)
	for _, f := range s.Validate(payload(t, `{"a":"v","b":"v","`+key+`":1}`)) {
		if len(f.Message) > 400 || len(f.Pointer) > strictjson.MaxPointerBytes+8 || strings.ContainsRune(f.Message, 0x1b) {
			t.Errorf("finding of %d bytes at %d bytes: %.100q", len(f.Message), len(f.Pointer), f.Message)
		}
	}
}

func TestFindingsAreCountedNotListedWithoutEnd(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"items":{"type":"int"}}}}`)
	found := s.Validate(payload(t, `{"a":["x"`+strings.Repeat(`,"x"`, 999)+`]}`))
	if len(found) != MaxFindings+1 || found[MaxFindings].Message != "900 more violations are not shown" {
		t.Errorf("%d findings, the last is %v", len(found), found[len(found)-1])
	}
}

// nested makes a payload of n levels of {"a": …}.
func nested(n int) string {
	return strings.Repeat(`{"a":`, n) + "{}" + strings.Repeat("}", n)
}

func TestValidationsThatWouldBurnTimeAreRefused(t *testing.T) {
	twice := `{"properties":{"a":{"$ref":"#"}},"allOf":[{"properties":{"a":{"$ref":"#"}}}]}`
	many := strings.TrimSuffix(strings.Repeat(`{},`, 300_000), ",")
	required := `"r0"`
	for i := range 3000 {
		required += fmt.Sprintf(`,"r%d"`, i+1)
	}
	for name, c := range map[string]struct{ schema, payload string }{
		"a tree that doubles at each level":       {twice, nested(60)},
		"many objects that lack many fields":      {`{"properties":{"a":{"items":{"required":[` + required + `]}}}}`, `{"a":[` + many + `]}`},
		"many items that quote a long enum":       {`{"properties":{"a":{"items":{"enum":["` + strings.Repeat("x", 100_000) + `"]}}}}`, `{"a":[` + many[:150_000] + `{}]}`},
		"one long text and a large expression":    {`{"properties":{"a":{"pattern":"(x+x+x+){200}y"}}}`, `{"a":"` + strings.Repeat("x", 1_000_000) + `"}`},
		"an enum at each level of a deep payload": {`{"properties":{"a":{"$ref":"#"}},"enum":[1]}`, strings.Repeat(`{"a":`, 60) + `{"b":[` + many + `]}` + strings.Repeat("}", 60)},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := compiled(t, c.schema), payload(t, c.payload)
			start := processorTime()
			found := s.Validate(p)
			if took := processorTime() - start; took > 2*time.Second {
				t.Errorf("Validate took %v", took)
			}
			wantFindings(t, found, []string{"|too many steps|file"})
			if refs := s.FileRefs(p); len(refs) != 1 || refs[0].Err == nil {
				t.Errorf("FileRefs = %v, want one error", refs)
			}
		})
	}
}

func TestAPayloadWithinTheBudgetIsValidatedThoughTheContractDoubles(t *testing.T) {
	twice := `{"properties":{"a":{"$ref":"#"}},"allOf":[{"properties":{"a":{"$ref":"#"}}}]}`
	if found := compiled(t, twice).Validate(payload(t, nested(10))); len(found) != 0 {
		t.Errorf("findings = %v", found)
	}
}

func TestASchemaIsSafeForConcurrentUse(t *testing.T) {
	s := compiled(t, `{"properties":{"a":{"type":"int"},"f":{"type":"string","format":"file_path"}},"patternProperties":{"^p":{"pattern":"x"}}}`)
	var group sync.WaitGroup
	for i := range 8 {
		p := payload(t, fmt.Sprintf(`{"a":"x","f":"f%d","p":"y"}`, i))
		group.Go(func() {
			for range 50 {
				if n := len(s.Validate(p)); n != 2 {
					t.Errorf("%d findings", n)
				}
				s.FileRefs(p)
				s.FileFields()
			}
		})
	}
	group.Wait()
}

func TestTheLibraryIsLeftAsItWas(t *testing.T) {
	compiled(t, `{"properties":{"a":{"type":"string","format":"file_path"}}}`)
	if gojsonschema.FormatCheckers.Has(FilePath) {
		t.Error("file_path is registered for the whole process")
	}
}

func TestFindingsAreTheSameEveryTime(t *testing.T) {
	s := compiled(t, `{"additionalProperties":{"type":"int"},"required":["x","y","z"],"propertyNames":{"maxLength":1}}`)
	p := payload(t, `{"aa":"","bb":"","cc":"","dd":""}`)
	first := s.Validate(p)
	for range 20 {
		if diff := cmp.Diff(first, s.Validate(p)); diff != "" {
			t.Fatal(diff)
		}
	}
}
