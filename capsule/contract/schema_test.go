package contract

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// object wraps properties into a contract whose output takes anything.
func object(properties string) string {
	return `{"input":{"type":"object","properties":{` + properties + `}},"output":{}}`
}

func TestParseFindsMistakes(t *testing.T) {
	cases := []struct {
		name, raw string
		want      []string // "pointer|part of the message|part of the hint"
	}{
		{"no JSON", "{\n \"input\": {,}}", []string{"/input|line 2, column 12: expected a field's name|"}},
		{"an empty file", "", []string{"|it is empty|input"}},
		{"no object", "[]", []string{"|expected an object, got array|input"}},
		{"a name that stands twice", `{"input":{},"input":{},"output":{}}`, []string{`/input|"input" stands twice|`}},
		{"neither input nor output", `{}`, []string{`|no "input"|add "input"`, `|no "output"|add "output"`}},
		{"a schema in place of a contract", `{"type":"object","properties":{}}`, []string{`/properties|not known|two schemas`, `/type|not known|two schemas`, "|no \"input\"|", "|no \"output\"|"}},
		{"an unknown key at the top", `{"input":{},"output":{},"inptu":{}}`, []string{`/inptu|"inptu" is not known|did you mean "input"`}},
		{"a stranger at the top", `{"input":{},"output":{},"handlers":{}}`, []string{`/handlers|"handlers" is not known|remove`}},
		{"an input that isn't an object", `{"input":[],"output":true}`, []string{"/input|got array|type", "/output|got boolean|type"}},
		{"an input that no payload can satisfy", `{"input":{"type":"list"},"output":{}}`, []string{"/input/type|always an object|put the value into a field"}},
		{"an unknown type", object(`"a":{"type":"strng"}`), []string{`/input/properties/a/type|"strng" isn't a type; there are null, boolean, integer, number, string, array, object|did you mean "string"`}},
		{"a type for files", object(`"a":{"type":"file"}`), []string{`/input/properties/a/type|isn't a type|"format": "file_path"`}},
		{"a type that is a number", object(`"a":{"type":3}`), []string{`/input/properties/a/type|expected the name of a type, got integer|`}},
		{"an empty list of types", object(`"a":{"type":[]}`), []string{`/input/properties/a/type|empty|`}},
		{"a property that isn't a schema", object(`"a":"string"`), []string{`/input/properties/a|expected a schema (an object), got string|{"type": "string"}`}},
		{"properties that are no object", `{"input":{"properties":[]},"output":{}}`, []string{"/input/properties|expected an object of schemas, got array|"}},
		{"required as a boolean", object(`"a":{"required":true}`), []string{"/input/properties/a/required|got boolean|beside"}},
		{"required with a number", `{"input":{"required":["a",1,"a"]},"output":{}}`, []string{"/input/required/1|expected the name of a field, got integer|", "/input/required/2|twice|"}},
		{"a minimum that is a string", object(`"a":{"minimum":"1"}`), []string{"/input/properties/a/minimum|expected a number, got string|"}},
		{"a length that is negative", object(`"a":{"minLength":-1,"maxItems":1.5}`), []string{"/input/properties/a/maxItems|whole number from 0|", "/input/properties/a/minLength|whole number from 0|"}},
		{"bounds the wrong way round", object(`"a":{"minLength":3,"maxLength":2}`), []string{"/input/properties/a/minLength|greater than|swap"}},
		{"counts the wrong way round", object(`"a":{"minItems":2,"maxItems":1,"minProperties":1,"maxProperties":0}`), []string{"/input/properties/a/minItems|greater than|swap", "/input/properties/a/minProperties|greater than|swap"}},
		{"numbers the wrong way round", object(`"a":{"minimum":0.2,"maximum":0.1}`), []string{`/input/properties/a/minimum|"minimum" is greater than "maximum"|lower "minimum"`}},
		{"bounds that are equal", object(`"a":{"minLength":2,"maxLength":2.0,"minimum":1,"maximum":1e0}`), nil},
		{"a length beyond all lengths", object(`"a":{"maxLength":1e16}`), []string{"/input/properties/a/maxLength|whole number from 0|"}},
		{"a length that isn't a number", object(`"a":{"maxLength":"5"}`), []string{"/input/properties/a/maxLength|expected a whole number, got string|10"}},
		{"a multiple that isn't a number", object(`"a":{"multipleOf":"5"}`), []string{"/input/properties/a/multipleOf|expected a number, got string|0.01"}},
		{"a multiple that is negative", object(`"a":{"multipleOf":-1}`), []string{"/input/properties/a/multipleOf|greater than 0|"}},
		{"a pattern that isn't text", object(`"a":{"pattern":7}`), []string{"/input/properties/a/pattern|expected a regular expression in a string, got integer|a-z"}},
		{"a format that isn't text", object(`"a":{"format":["date"]}`), []string{"/input/properties/a/format|expected the name of a format, got array|"}},
		{"unique items by number", object(`"a":{"uniqueItems":1}`), []string{"/input/properties/a/uniqueItems|expected true or false, got integer|"}},
		{"a reference that isn't text", object(`"a":{"$ref":7}`), []string{"/input/properties/a/$ref|expected a string, got integer|"}},
		{"a draft that isn't text", `{"$schema":7,"input":{},"output":{}}`, []string{"/$schema|expected a string, got integer|draft-07"}},
		{"an id that isn't text", `{"$id":7,"input":{},"output":{}}`, []string{"/$id|expected a string, got integer|"}},
		{"definitions that are none", `{"definitions":[],"input":{},"output":{}}`, []string{"/definitions|expected an object of schemas, got array|"}},
		{"dependencies of a number", `{"input":{"dependencies":{"a":[1]}},"output":{}}`, []string{"/input/dependencies/a/0|expected the name of a field, got integer|"}},
		{"dependencies twice on one name", `{"input":{"dependencies":{"a":["b","b"]}},"output":{}}`, []string{"/input/dependencies/a/1|twice|remove"}},
		{"dependencies on a text", `{"input":{"dependencies":{"a":"b"}},"output":{}}`, []string{"/input/dependencies/a|expected a schema (an object), got string|"}},
		{"a multiple of nothing", object(`"a":{"multipleOf":0}`), []string{"/input/properties/a/multipleOf|greater than 0|"}},
		{"draft-04's exclusive minimum", object(`"a":{"minimum":0,"exclusiveMinimum":true}`), []string{"/input/properties/a/exclusiveMinimum|draft-04|write the number"}},
		{"a pattern with a lookahead", object(`"a":{"pattern":"^(?=x)"}`), []string{"/input/properties/a/pattern|a regular expression|lookaheads"}},
		{"a pattern that isn't an expression", object(`"a":{"pattern":"("}`), []string{"/input/properties/a/pattern|missing closing|RE2"}},
		{"a pattern that is giant", object(`"a":{"pattern":"` + strings.Repeat(`(a{1000})`, 30) + `"}`), []string{"/input/properties/a/pattern|too large|smaller"}},
		{"a bad pattern of names", `{"input":{"patternProperties":{"[":{}}},"output":{}}`, []string{"/input/patternProperties/[|a regular expression|"}},
		{"an enum that is no list", object(`"a":{"enum":"x"}`), []string{"/input/properties/a/enum|expected a list|"}},
		{"an enum with twins", object(`"a":{"enum":[1,1.0],"const":1}`), []string{"/input/properties/a/enum/1|twice|"}},
		{"an empty enum", object(`"a":{"enum":[]}`), []string{"/input/properties/a/enum|empty|"}},
		{"an empty anyOf", object(`"a":{"anyOf":[]}`), []string{"/input/properties/a/anyOf|empty|"}},
		{"a oneOf that is no list", object(`"a":{"oneOf":{}}`), []string{"/input/properties/a/oneOf|expected a list of schemas, got object|"}},
		{"file_path on a number", object(`"a":{"type":"int","format":"file_path"}`), []string{"/input/properties/a/format|strings only|"}},
		{"file_path without a type", object(`"a":{"format":"file_path"}`), []string{"/input/properties/a/format|strings only|"}},
		{"a draft that isn't known", `{"$schema":"https://json-schema.org/draft/2030-01/schema","input":{},"output":{}}`, []string{"/$schema|names another one|draft-07"}},
		{"a draft inside that isn't known", `{"input":{"$schema":"https://json-schema.org/draft-03/schema"},"output":{}}`, []string{"/input/$schema|names another one|draft-07"}},
		{"an id inside", `{"input":{"$id":"http://x.invalid/"},"output":{}}`, []string{"/input/$id|would change what its references mean|"}},
		{"an unknown keyword with a likely meaning", `{"input":{"requierd":["a"]},"output":{}}`, []string{`/input/requierd|is not a keyword|did you mean "required"`}},
		{"a field without properties", `{"input":{"customer":{"type":"string"}},"output":{}}`, []string{`/input/customer|is not a keyword|belongs under "properties"`}},
		{"a misspelt format", object(`"a":{"type":"string","format":"file-path"}`), []string{`/input/properties/a/format|not known|"file_path"`}},
		{"keywords beside a reference", `{"definitions":{"x":{}},"input":{"$ref":"#/definitions/x","required":["a"]},"output":{}}`, []string{`/input/required|stands beside $ref|allOf`}},
		{"several at once", object(`"a":{"type":"strng","minimum":"x"},"b":{"pattern":"("}`), []string{"/input/properties/a/minimum|got string|", "/input/properties/a/type|a type|", "/input/properties/b/pattern|a regular expression|"}},
		{"a mistake in a definition that nobody uses", `{"definitions":{"x":{"type":"x"}},"input":{},"output":{}}`, []string{`/definitions/x/type|"x" isn't a type|`}},
	}
	add := func(name, raw, want string) {
		cases = append(cases, struct {
			name, raw string
			want      []string
		}{name, raw, []string{want}})
	}
	for key, hint := range untranslatable {
		add("the keyword "+key, fmt.Sprintf(`{"input":{%q:{}},"output":{}}`, key), "/input/"+key+"|draft-07 does not know|"+hint)
		add("the keyword "+key+" where the draft has it", fmt.Sprintf(`{"$schema":"https://json-schema.org/draft/2020-12/schema","input":{%q:{}},"output":{}}`, key), "/input/"+key+"|draft-07, which has nothing for|"+hint)
	}
	for key, newer := range newerKeywords {
		add("the newer keyword "+key, fmt.Sprintf(`{"$schema":"http://json-schema.org/draft-07/schema","input":{%q:{}},"output":{}}`, key), "/input/"+key+"|draft-07 does not know|"+newer.hint)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			contract, found := Parse([]byte(c.raw))
			if (contract == nil) != (len(fault.Errors(found)) > 0) {
				t.Errorf("contract = %v with findings %v", contract, found)
			}
			wantFindings(t, found, c.want)
			for _, f := range found {
				if f.File != "schema.json" {
					t.Errorf("finding %v names no file", f)
				}
			}
		})
	}
}

// wantFindings compares findings with "pointer|part of message|part of hint".
func wantFindings(t *testing.T, found []fault.Finding, want []string) {
	t.Helper()
	for i, f := range found {
		if i >= len(want) {
			t.Errorf("unexpected finding %v", f)
			continue
		}
		parts := strings.Split(want[i], "|")
		if f.Pointer != parts[0] || !strings.Contains(f.Message, parts[1]) || !strings.Contains(f.Hint, parts[2]) {
			t.Errorf("finding %d is %q: %s (%s), want %s", i, f.Pointer, f.Message, f.Hint, want[i])
		}
	}
	if len(found) < len(want) {
		t.Errorf("%d findings, want %d", len(found), len(want))
	}
}

func TestParseGivesALineForASyntaxError(t *testing.T) {
	_, found := Parse([]byte("{\n\n  \"input\": nope\n}"))
	if len(found) != 1 || found[0].Where() != "schema.json:3" {
		t.Errorf("findings = %v", found)
	}
}

func TestParseAccepts(t *testing.T) {
	cases := map[string]string{
		"the standard's example":       `{"input":{"type":"object","properties":{"retry_count":{"type":"integer"},"user_prompt":{"type":"string"},"source_document":{"type":"string","format":"file_path","description":"x"}},"required":["user_prompt","source_document"]},"output":{"type":"object","properties":{"summary_text":{"type":"string"}}}}`,
		"the short names everywhere":   `{"definitions":{"d":{"type":"dict"}},"input":{"type":"dict","properties":{"a":{"type":["int","bool","null"]},"b":{"type":"list","items":{"type":"float"}},"c":{"anyOf":[{"type":"int"},{"not":{"type":"list"}}]}},"additionalProperties":{"$ref":"#/definitions/d"}},"output":{}}`,
		"the short names as values":    object(`"type":{"enum":["int","float",{"type":"int"}],"default":{"type":"int"},"examples":[{"type":"nope"}]},"k":{"const":{"type":"nope"}}`),
		"drafts 4, 6 and 7":            `{"$schema":"http://json-schema.org/draft-04/schema#","input":{"$schema":"http://json-schema.org/draft-06/schema","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}},"output":{"$schema":"https://json-schema.org/draft-07/schema"}}`,
		"plain recursion":              `{"definitions":{"tree":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/definitions/tree"}}}}},"input":{"$ref":"#/definitions/tree"},"output":{}}`,
		"references of all local ways": `{"$defs":{"a/b":{"type":"string"},"c d":{"$ref":"#/$defs/a~1b"}},"input":{"properties":{"x":{"$ref":"#/$defs/c%20d"},"y":{"$ref":"#/input/properties/x"},"z":{"$ref":"#/output/anyOf/0"}}},"output":{"anyOf":[{"type":"dict"}]}}`,
		"fields named like keywords":   object(`"$ref":{"type":"string"},"$id":{"type":"int"},"enum":{"type":"int"},"properties":{"type":"int"},"const":{"properties":{"$ref":{"type":"string"}}}`),
		"annotations and extensions":   `{"title":"t","description":"d","$id":"http://x.invalid/y","input":{"title":"t","$comment":"c","readOnly":true,"x-ui":{"a":1},"examples":[]},"output":{"deprecated":true}}`,
		"true and false as schemas":    object(`"a":true,"b":false,"c":{"items":[true,false],"additionalItems":false}`),
		"numbers in odd forms":         object(`"a":{"minLength":1.0,"maxLength":1e2,"minimum":-1e3,"multipleOf":0.01}`),
		"dependencies of both kinds":   `{"input":{"dependencies":{"a":["b"],"c":{"required":["d"]},"e":[]}},"output":{}}`,
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			contract, found := Parse([]byte(raw))
			if contract == nil || len(found) > 0 {
				t.Errorf("Parse = %v, %v", contract, found)
			}
		})
	}
}

func TestRawIsWhatTheAuthorWrote(t *testing.T) {
	contract, _ := Parse([]byte(`{"input": { "type":"int-free", "type2":1 } , "output":{}}`))
	if contract != nil {
		t.Fatal("Parse took an unknown type")
	}
	contract, _ = Parse([]byte(`{"input": { "properties" : {"z":{"type":"int"}} } , "output":{}}`))
	if got := string(contract.Input.Raw()); got != `{ "properties" : {"z":{"type":"int"}} }` {
		t.Errorf("Raw() = %s", got)
	}
	contract.Input.Raw()[0] = 'x'
	if contract.Input.Raw()[0] != '{' {
		t.Error("Raw() gives the schema away")
	}
}

func TestReferencesThatAreRefused(t *testing.T) {
	for ref, want := range map[string]string{
		"http://x.invalid/s.json":     "another document",
		"https://x.invalid/s.json#/a": "another document",
		"file:///etc/passwd":          "another document",
		"//x.invalid/s":               "another document",
		"other.json":                  "another document",
		"/etc/passwd":                 "another document",
		"":                            "another document",
		"http://json-schema.org/draft-07/schema#": "another document",
		"#name":              "a JSON pointer",
		"#%zz":               "a JSON pointer",
		"#":                  "a schema itself",
		"#/definitions/none": "isn't there",
		"#/output/anyOf/00":  "isn't there",
		"#/output/anyOf/-1":  "isn't there",
		"#/title/x":          "isn't there",
	} {
		t.Run(ref, func(t *testing.T) {
			raw := fmt.Sprintf(`{"title":"t","input":{"properties":{"a":{"$ref":%q}}},"output":{"anyOf":[{}]}}`, ref)
			contract, found := Parse([]byte(raw))
			if contract != nil {
				t.Fatal("Parse took it")
			}
			wantFindings(t, found, []string{"/input/properties/a/$ref|" + want + "|"})
		})
	}
}

func TestReferencesMayStartAtTheSideThatTheyStandIn(t *testing.T) {
	for name, c := range map[string]struct{ raw, payload, want string }{
		"as a generator writes them":                {`{"input":{"$defs":{"x":{"type":"int"}},"properties":{"a":{"$ref":"#/$defs/x"}}},"output":{}}`, `{"a":"x"}`, "/a|expected integer, got string|"},
		"the top comes first":                       {`{"$defs":{"x":{"type":"bool"}},"input":{"$defs":{"x":{"type":"int"}},"properties":{"a":{"$ref":"#/$defs/x"}}},"output":{}}`, `{"a":"x"}`, "/a|expected boolean, got string|"},
		"a side with a draft of its own goes first": {`{"$defs":{"x":{"type":"bool"}},"input":{"$schema":"http://json-schema.org/draft-07/schema#","$defs":{"x":{"type":"int"}},"properties":{"a":{"$ref":"#/$defs/x"}}},"output":{}}`, `{"a":"x"}`, "/a|expected integer, got string|"},
		"such a side can refer to itself":           {`{"input":{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"n":{"type":"int"},"child":{"$ref":"#"}}},"output":{}}`, `{"child":{"child":{"n":"x"}}}`, "/child/child/n|expected integer, got string|"},
		"and still to the top":                      {`{"$defs":{"x":{"type":"bool"}},"input":{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/$defs/x"}}},"output":{}}`, `{"a":"x"}`, "/a|expected boolean, got string|"},
	} {
		t.Run(name, func(t *testing.T) {
			contract, found := Parse([]byte(c.raw))
			if contract == nil || len(found) > 0 {
				t.Fatal(found)
			}
			wantFindings(t, contract.Input.Validate(payload(t, c.payload)), []string{c.want})
		})
	}
	t.Run("but not at the other side", func(t *testing.T) {
		_, found := Parse([]byte(`{"input":{"properties":{"a":{"$ref":"#/$defs/x"}}},"output":{"$defs":{"x":{}}}}`))
		wantFindings(t, found, []string{"/input/properties/a/$ref|isn't there|top of the document"})
	})
}

func TestCirclesInPlaceAreRefused(t *testing.T) {
	for name, definitions := range map[string]string{
		"a reference to itself":       `"a":{"$ref":"#/definitions/a"}`,
		"two in a ring":               `"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}`,
		"through allOf":               `"a":{"allOf":[{"type":"object"},{"$ref":"#/definitions/a"}]}`,
		"through not":                 `"a":{"not":{"$ref":"#/definitions/a"}}`,
		"through if":                  `"a":{"if":{"$ref":"#/definitions/a"}}`,
		"through a dependency":        `"a":{"dependencies":{"x":{"$ref":"#/definitions/a"}}}`,
		"through a part of the other": `"a":{"anyOf":[{"$ref":"#/definitions/a/anyOf/0"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			raw := `{"definitions":{` + definitions + `},"input":{"properties":{"f":{"$ref":"#/definitions/a"}}},"output":{}}`
			contract, found := within2s(t, raw)
			if contract != nil || len(found) != 1 || !strings.Contains(found[0].Message, "circle") {
				t.Errorf("Parse = %v, %v", contract, found)
			}
		})
	}
}

func within2s(t *testing.T, raw string) (*Contract, []fault.Finding) {
	t.Helper()
	start := processorTime()
	contract, found := Parse([]byte(raw))
	if took := processorTime() - start; took > 2*time.Second {
		t.Errorf("Parse took %v", took)
	}
	return contract, found
}

// chain makes n definitions that each try the next one twice.
func chain(n int, link string) string {
	var b strings.Builder
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/definitions/d%d"}`, i+1)
		fmt.Fprintf(&b, `"d%d":`+link+`,`, i, next, next)
	}
	return fmt.Sprintf(`{"definitions":{%s"d%d":{"type":"integer"}},"input":{"properties":{"a":{"$ref":"#/definitions/d0"}}},"output":{}}`, b.String(), n)
}

func TestContractsThatWouldBurnTimeAreRefused(t *testing.T) {
	manySchemas := strings.TrimSuffix(strings.Repeat(`{},`, 5000), ",")
	var ring strings.Builder
	for i := range 100 {
		fmt.Fprintf(&ring, `"d%d":{"$ref":"#/definitions/d%d"},`, i, i+1)
	}
	for name, c := range map[string]struct{ raw, want string }{
		"a chain of anyOf":       {chain(30, `{"anyOf":[%s,%s]}`), "too many alternatives"},
		"a chain of oneOf":       {chain(30, `{"oneOf":[%s,%s]}`), "too many alternatives"},
		"a chain of allOf":       {chain(30, `{"allOf":[%s,%s]}`), "too many alternatives"},
		"a chain of if and then": {chain(30, `{"if":%s,"then":%s}`), "too many alternatives"},
		"a chain of not":         {chain(30, `{"anyOf":[{"not":%s},{"not":%s}]}`), "too many alternatives"},
		"a long chain of $ref":   {`{"definitions":{` + ring.String() + `"d100":{}},"input":{"$ref":"#/definitions/d0"},"output":{}}`, "too many alternatives"},
		"too many schemas":       {object(`"a":{"items":[` + manySchemas + `]}`), "more than 4096 schemas"},
		"too much text":          {object(`"a":{"description":"` + strings.Repeat("x", 300<<10) + `"}`), "the limit is 262144"},
		"too deep":               {object(`"a":` + strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100)), "64 levels"},
		"too many mistakes":      {object(`"a":{"type":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 1000), ",") + `]}`), "more problems than these"},
		"a number out of bounds": {object(`"a":{"minimum":1e1000000}`), "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			contract, found := within2s(t, c.raw)
			if contract != nil || len(found) == 0 || len(found) > MaxFindings+1 {
				t.Fatalf("Parse = %v, %d findings", contract, len(found))
			}
			if last := found[len(found)-1]; !strings.Contains(last.Message, c.want) {
				t.Errorf("finding %v, want %q", last, c.want)
			}
		})
	}
}

func TestNothingIsFetchedOrRead(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(`{"type":"integer"}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(file, []byte(`{"type":"integer"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{server.URL + "/s", "file://" + file} {
		for _, raw := range []string{
			fmt.Sprintf(`{"input":{"properties":{"a":{"$ref":%q}}},"output":{}}`, target),
			fmt.Sprintf(`{"$id":%q,"input":{"properties":{"a":{"$ref":"#/x"}}},"output":{}}`, target),
			fmt.Sprintf(`{"input":{"$id":%q,"properties":{"a":{"$ref":"s"}}},"output":{}}`, target),
			fmt.Sprintf(`{"$schema":%q,"input":{},"output":{}}`, target),
			fmt.Sprintf(`{"input":{"properties":{"a":{"id":%q,"$ref":"#/definitions/b"}}},"output":{}}`, target),
		} {
			if contract, _ := Parse([]byte(raw)); contract != nil {
				t.Errorf("Parse took %s", raw)
			}
		}
		t.Run("even the library on its own is sealed against "+target, func(t *testing.T) {
			if _, err := engineFor(map[string]any{"$ref": target}); err == nil {
				t.Error("the library resolved a reference to another document")
			}
		})
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

func TestCompileTakesAStandAloneSchema(t *testing.T) {
	s, found := Compile([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://x.invalid/s","type":"object","properties":{"child":{"$ref":"#"},"n":{"type":"int"}}}`))
	if s == nil || len(found) > 0 {
		t.Fatalf("Compile = %v", found)
	}
	wantFindings(t, s.Validate(payload(t, `{"child":{"child":{"n":"x"}}}`)), []string{"/child/child/n|expected integer, got string|"})
	if _, found := Compile([]byte(`{"type":"nope"}`)); len(found) != 1 || found[0].File != "" || found[0].Pointer != "/type" {
		t.Errorf("Compile = %v", found)
	}
}
