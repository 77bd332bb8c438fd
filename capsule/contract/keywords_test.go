package contract

import "testing"

// verdict is what a schema for one value says of values.
type verdict struct {
	name   string
	schema string
	holds  []string
	breaks map[string]string // value -> message of a finding at it
}

// judge tests verdicts: each value stands in the field "v".
func judge(t *testing.T, verdicts []verdict) {
	t.Helper()
	for _, c := range verdicts {
		t.Run(c.name, func(t *testing.T) {
			s := compiled(t, `{"properties":{"v":`+c.schema+`}}`)
			for _, value := range c.holds {
				if found := s.Validate(payload(t, `{"v":`+value+`}`)); len(found) > 0 {
					t.Errorf("%s is refused: %v", value, found)
				}
			}
			for value, message := range c.breaks {
				said := false
				for _, f := range s.Validate(payload(t, `{"v":`+value+`}`)) {
					said = said || f.Message == message
				}
				if !said {
					t.Errorf("%s: nothing says %q: %v", value, message, s.Validate(payload(t, `{"v":`+value+`}`)))
				}
			}
		})
	}
}

func TestTypesHoldTheirValuesAndNoOthers(t *testing.T) {
	all := map[string]string{
		"null": "null", "true": "boolean", "7": "integer", "7.5": "number", `"s"`: "string", "[]": "array", "{}": "object",
	}
	takes := map[string][]string{
		"null": {"null"}, "boolean": {"true"}, "integer": {"7"}, "number": {"7", "7.5"},
		"string": {`"s"`}, "array": {"[]"}, "object": {"{}"},
	}
	for name, holds := range takes {
		breaks := map[string]string{}
		for value, kind := range all {
			breaks[value] = "expected " + name + ", got " + kind
		}
		for _, value := range holds {
			delete(breaks, value)
		}
		judge(t, []verdict{{name: name, schema: `{"type":"` + name + `"}`, holds: holds, breaks: breaks}})
		for alias, full := range aliases {
			if full == name {
				judge(t, []verdict{{name: alias, schema: `{"type":"` + alias + `"}`, holds: holds, breaks: breaks}})
			}
		}
	}
}

func TestListsOfTypes(t *testing.T) {
	judge(t, []verdict{
		{
			name:   "two types",
			schema: `{"type":["string","null"]}`,
			holds:  []string{`"x"`, "null"},
			breaks: map[string]string{"1": "expected null or string, got integer"},
		},
		{
			name:   "a type and its alias are one",
			schema: `{"type":["int","integer"]}`,
			holds:  []string{"1", "1.0"},
			breaks: map[string]string{"1.5": "expected integer, got number"},
		},
		{
			name:   "an integer beside numbers",
			schema: `{"type":["integer","number"]}`,
			holds:  []string{"1", "1.5"},
			breaks: map[string]string{`"1"`: "expected integer or number, got string"},
		},
	})
}

func TestNumbers(t *testing.T) {
	judge(t, []verdict{
		{
			name:   "minimum takes the bound",
			schema: `{"minimum":1.5}`,
			holds:  []string{"1.5", "2", "1e3", `"no number"`},
			breaks: map[string]string{"1.4999": "must be at least 1.5", "-2": "must be at least 1.5"},
		},
		{
			name:   "maximum takes the bound",
			schema: `{"maximum":-1}`,
			holds:  []string{"-1", "-1.0", "-1e2"},
			breaks: map[string]string{"-0.5": "must be at most -1"},
		},
		{
			name:   "exclusiveMinimum doesn't",
			schema: `{"exclusiveMinimum":0}`,
			holds:  []string{"1e-300"},
			breaks: map[string]string{"0": "must be greater than 0", "-0": "must be greater than 0", "0.0": "must be greater than 0"},
		},
		{
			name:   "exclusiveMaximum doesn't",
			schema: `{"exclusiveMaximum":10}`,
			holds:  []string{"9.999"},
			breaks: map[string]string{"10": "must be less than 10", "1e1": "must be less than 10"},
		},
		{
			name:   "a multiple of a fraction is exact",
			schema: `{"multipleOf":0.01}`,
			holds:  []string{"19.99", "0", "1e2", "-0.07"},
			breaks: map[string]string{"0.001": "must be a multiple of 0.01"},
		},
		{
			name:   "numbers beyond a double's whole ones are exact",
			schema: `{"maximum":9007199254740993}`,
			holds:  []string{"9007199254740993"},
			breaks: map[string]string{"9007199254740994": "must be at most 9.007199254740993e+15"},
		},
	})
}

func TestTexts(t *testing.T) {
	judge(t, []verdict{
		{
			name:   "lengths count characters",
			schema: `{"minLength":2,"maxLength":2}`,
			holds:  []string{`"ab"`, `"日本"`, `"😀😀"`, "12345"},
			breaks: map[string]string{`"😀"`: "is too short: at least 2 characters", `"abc"`: "is too long: at most 2 characters"},
		},
		{
			name:   "a pattern matches anywhere",
			schema: `{"pattern":"b+"}`,
			holds:  []string{`"abc"`, "1"},
			breaks: map[string]string{`"ac"`: "does not match the pattern b+"},
		},
		{
			name:   "anchors hold it",
			schema: `{"pattern":"^b+$"}`,
			holds:  []string{`"bb"`},
			breaks: map[string]string{`"abb"`: "does not match the pattern ^b+$", `"b\n"`: "does not match the pattern ^b+$"},
		},
	})
}

func TestFormats(t *testing.T) {
	judge(t, []verdict{
		{
			name:   "date",
			schema: `{"format":"date"}`,
			holds:  []string{`"2024-02-29"`},
			breaks: map[string]string{`"2023-02-29"`: "is not a valid date", `"24-2-1"`: "is not a valid date"},
		},
		{
			name:   "date-time",
			schema: `{"format":"date-time"}`,
			holds:  []string{`"2024-02-29T12:00:00Z"`, `"2024-02-29T12:00:00.5+02:00"`},
			breaks: map[string]string{`"2024-02-30T12:00:00Z"`: "is not a valid date-time"},
		},
		{
			name:   "ipv4 and ipv6",
			schema: `{"anyOf":[{"format":"ipv4"},{"format":"ipv6"}]}`,
			holds:  []string{`"192.0.2.1"`, `"2001:db8::1"`},
			breaks: map[string]string{`"192.0.2.256"`: "matches none of the alternatives (anyOf)"},
		},
		{
			name:   "uuid",
			schema: `{"format":"uuid"}`,
			holds:  []string{`"6ba7b810-9dad-11d1-80b4-00c04fd430c8"`},
			breaks: map[string]string{`"6ba7b8109dad11d180b400c04fd430c8"`: "is not a valid uuid"},
		},
		{
			name:   "file_path says nothing here",
			schema: `{"type":"string","format":"file_path"}`,
			holds:  []string{`"../x"`, `""`},
			breaks: map[string]string{"1": "expected string, got integer"},
		},
	})
}

func TestLists(t *testing.T) {
	judge(t, []verdict{
		{
			name:   "counts",
			schema: `{"minItems":1,"maxItems":2}`,
			holds:  []string{"[1]", "[1,2]", "{}"},
			breaks: map[string]string{"[]": "has too few items: at least 1", "[1,2,3]": "has too many items: at most 2"},
		},
		{
			name:   "equal items in any form",
			schema: `{"uniqueItems":true}`,
			holds:  []string{"[1,2]", `[1,"1"]`, `[{"a":1},{"a":2}]`, "[[],{}]", "[0,false]"},
			breaks: map[string]string{
				"[1,1.0]":                           "items 0 and 1 are equal, but all must differ",
				`[{"a":1,"b":2},{"b":2,"a":1}]`:     "items 0 and 1 are equal, but all must differ",
				`["x",null,null]`:                   "items 1 and 2 are equal, but all must differ",
				`[[{"a":[1]}],2,[{"a":[1]}],3,"x"]`: "items 0 and 2 are equal, but all must differ",
			},
		},
		{
			name:   "uniqueItems that is false",
			schema: `{"uniqueItems":false}`,
			holds:  []string{"[1,1]"},
		},
		{
			name:   "a tuple that is shorter",
			schema: `{"items":[{"type":"int"},{"type":"string"}]}`,
			holds:  []string{"[]", "[1]", `[1,"a"]`, `[1,"a",null]`},
		},
		{
			name:   "a tuple that is closed",
			schema: `{"items":[{"type":"int"}],"additionalItems":false}`,
			holds:  []string{"[]", "[1]"},
			breaks: map[string]string{"[1,2]": "has more items than the contract describes"},
		},
		{
			name:   "a tuple of nothing",
			schema: `{"items":[],"maxItems":0}`,
			holds:  []string{"[]"},
			breaks: map[string]string{"[1]": "has too many items: at most 0"},
		},
		{
			name:   "items that are false",
			schema: `{"items":false}`,
			holds:  []string{"[]", `"no list"`},
		},
		{
			name:   "contains",
			schema: `{"contains":{"minimum":5}}`,
			holds:  []string{"[1,5]", "{}", `["no number"]`},
			breaks: map[string]string{"[1,2]": "no item is of the form that one must have", "[]": "no item is of the form that one must have"},
		},
	})
}

func TestObjects(t *testing.T) {
	judge(t, []verdict{
		{
			name:   "counts",
			schema: `{"minProperties":1,"maxProperties":1}`,
			holds:  []string{`{"a":1}`, "[]"},
			breaks: map[string]string{"{}": "has too few fields: at least 1", `{"a":1,"b":2}`: "has too many fields: at most 1"},
		},
		{
			name:   "a required field may be null",
			schema: `{"required":["a"]}`,
			holds:  []string{`{"a":null}`, `"no object"`},
			breaks: map[string]string{`{"A":1}`: `required field "a" is missing`},
		},
		{
			name:   "no required field",
			schema: `{"required":[]}`,
			holds:  []string{"{}"},
		},
		{
			name:   "further fields of a form",
			schema: `{"properties":{"a":{}},"additionalProperties":{"type":"int"}}`,
			holds:  []string{`{"a":"x","b":1}`},
			breaks: map[string]string{},
		},
		{
			name:   "a field that is false",
			schema: `{"properties":{"a":false}}`,
			holds:  []string{"{}", `{"b":1}`},
		},
		{
			name:   "dependencies on names",
			schema: `{"dependencies":{"a":["b","c"]}}`,
			holds:  []string{"{}", `{"a":1,"b":1,"c":1}`, `{"b":1}`},
			breaks: map[string]string{`{"a":1,"b":1}`: "field c is required beside another field that is there"},
		},
		{
			name:   "dependencies on a schema",
			schema: `{"dependencies":{"a":{"maxProperties":1}}}`,
			holds:  []string{`{"a":1}`, `{"b":1,"c":1}`},
			breaks: map[string]string{`{"a":1,"b":1}`: "has too many fields: at most 1"},
		},
		{
			name:   "dependencies on false",
			schema: `{"dependencies":{"a":false}}`,
			holds:  []string{"{}", `{"b":1}`},
			breaks: map[string]string{`{"a":1}`: "is not allowed by the contract"},
		},
		{
			name:   "names of fields",
			schema: `{"propertyNames":{"enum":["a","b"]}}`,
			holds:  []string{`{"a":1}`, "{}"},
			breaks: map[string]string{`{"c":1}`: `the name of field "c" is not allowed`},
		},
	})
}

func TestCombinations(t *testing.T) {
	judge(t, []verdict{
		{
			name:   "allOf",
			schema: `{"allOf":[{"minimum":1},{"maximum":2}]}`,
			holds:  []string{"1", "2"},
			breaks: map[string]string{"0": "must be at least 1", "3": "must be at most 2"},
		},
		{
			name:   "anyOf with null",
			schema: `{"anyOf":[{"type":"int"},{"type":"null"}]}`,
			holds:  []string{"1", "null"},
			breaks: map[string]string{`"x"`: "matches none of the alternatives (anyOf)"},
		},
		{
			name:   "oneOf",
			schema: `{"oneOf":[{"minimum":2},{"maximum":4}]}`,
			holds:  []string{"1", "5"},
			breaks: map[string]string{"3": "must match exactly one of the alternatives (oneOf)"},
		},
		{
			name:   "a double negation",
			schema: `{"not":{"not":{"type":"int"}}}`,
			holds:  []string{"1"},
			breaks: map[string]string{`"x"`: "is of a form that the contract excludes"},
		},
		{
			name:   "if without a branch",
			schema: `{"if":{"type":"int"}}`,
			holds:  []string{"1", `"x"`},
		},
		{
			name:   "then without if",
			schema: `{"then":{"type":"int"}}`,
			holds:  []string{`"x"`},
		},
		{
			name:   "if and else",
			schema: `{"if":{"type":"int"},"else":{"type":"string"}}`,
			holds:  []string{"1", `"x"`},
			breaks: map[string]string{"null": "expected string, got null"},
		},
		{
			name:   "enum of all kinds",
			schema: `{"enum":[null,true,1,"x",[1],{"a":1}]}`,
			holds:  []string{"null", "true", "1", `"x"`, "[1]", `{"a":1}`},
			breaks: map[string]string{"false": `is not one of the allowed values: null, true, 1, "x", [1], {"a":1}`},
		},
		{
			name:   "const that is null",
			schema: `{"const":null}`,
			holds:  []string{"null"},
			breaks: map[string]string{"0": "is not the allowed value: null"},
		},
		{
			name:   "true and nothing at all",
			schema: `{"allOf":[true,{}]}`,
			holds:  []string{"null", "[]"},
		},
	})
}
