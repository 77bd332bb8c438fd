package contract

import (
	"bytes"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[1,-2.5e+3,"x\u00e9\ud83d\ude00",true,false,null,{"b":{}}]}`, `{"a":1,"a":2}`, `[1]`, `{"a":1e400}`, "\xef\xbb\xbf{}",
		`{"a":"\ud800"}`, ` { "a" : 0.0 } x`, `{"a":NaN}`, strings.Repeat(`{"a":`, 70), `{"":{"":""}}`, "{\"a\":\"\xff\"}", `{"a":01}`,
	} {
		f.Add([]byte(seed))
	}
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		p, err := Decode(raw, 1<<16)
		if err != nil {
			if kind := fault.KindOf(err); kind != fault.Input && kind != fault.TooLarge {
				t.Fatalf("a refusal is %v: %v", kind, err)
			}
			return
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var want map[string]any
		if err := dec.Decode(&want); err != nil || dec.More() {
			t.Fatalf("Decode took what encoding/json refuses: %v", err)
		}
		if !reflect.DeepEqual(want, p.object) {
			t.Fatalf("Decode read %v, encoding/json %v", p.object, want)
		}
		again, err := Decode(p.JSON(), 1<<16)
		if err != nil || !bytes.Equal(again.JSON(), p.JSON()) {
			t.Fatalf("the payload doesn't survive: %s, %v", again.JSON(), err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"input":{},"output":{}}`, object(`"a":{"type":["int","null"],"enum":[1,null]},"f":` + file), chain(5, `{"anyOf":[%s,%s]}`), chain(30, `{"allOf":[%s,%s]}`),
		`{"definitions":{"a":{"$ref":"#/definitions/a"}},"input":{"$ref":"#/definitions/a"},"output":{}}`,
		`{"input":{"properties":{"a":{"$ref":"#/input"}},"patternProperties":{"^x":{"items":[{},true]}},"dependencies":{"a":["b"],"c":{}},"if":{"not":{}},"then":false},"output":{"const":{"$ref":"x"},"propertyNames":{"maxLength":3},"contains":{"uniqueItems":true,"minItems":1}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"n":{"type":"integer","minimum":0}},"input":{"properties":{"a":{"prefixItems":[{"$ref":"#/$defs/n","maximum":3},true],"items":false,"contains":{},"minContains":1}},"dependentRequired":{"a":["f"]},"dependentSchemas":{"a":{"required":["xa"]}},"dependencies":{"f":["a"]}},"output":{"$ref":"#/$defs/n"}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","input":{"minimum":1,"exclusiveMinimum":true,"multipleOf":0.1,"pattern":"^a"},"output":{"format":"date"}}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":[1,"x",{"a":{"a":null}}],"f":"x","xa":[1]}`))
	}
	fuzzbound.Run(f, func(t *testing.T, raw, instance []byte) {
		start := processorTime()
		contract, found := Parse(raw)
		if (contract == nil) != (len(fault.Errors(found)) > 0) {
			t.Fatalf("contract %v with findings %v", contract, found)
		}
		for _, finding := range found {
			if strings.Contains(finding.Message, "can't be used") || strings.Contains(finding.Message, "read again") {
				t.Fatalf("the library refuses what the compiler took: %v", finding)
			}
		}
		if contract != nil {
			if p, err := Decode(instance, 1<<12); err == nil {
				for _, finding := range contract.Input.Validate(p) {
					if strings.Contains(finding.Message, "could not be checked") || strings.Contains(finding.Message, "breaks the contract (") {
						t.Fatalf("the library gave up: %v", finding)
					}
				}
				contract.Output.Validate(p)
				contract.Input.FileRefs(p)
			}
			contract.Input.FileFields()
		}
		if took := processorTime() - start; took > 5*time.Second {
			t.Fatalf("it took %v", took)
		}
	})
}

func FuzzCleanName(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "../a", "/io/output/x", "/io/output//../x", "a\x00", "./.", `a\b`, "\xff", "/io/input/x"} {
		f.Add(seed)
	}
	fuzzbound.Run(f, func(t *testing.T, name string) {
		for _, stage := range append(stages, AnyStage) {
			clean, err := CleanName(name, stage)
			if err != nil {
				continue
			}
			if clean != path.Clean(clean) || path.IsAbs(clean) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(clean, "\x00\\\n\x1b") {
				t.Fatalf("CleanName(%q) = %q", name, clean)
			}
			if again, err := CleanName(clean, stage); err != nil || again != clean {
				t.Fatalf("CleanName(%q) = %q, %v", clean, again, err)
			}
		}
	})
}

func FuzzParseField(f *testing.F) {
	s := compiled(f, `{"properties":{"i":{"type":"int"},"s":{"type":"string"},"o":{"properties":{"b":{"type":"bool"}},"additionalProperties":false},"l":{"type":"list"}}}`)
	for _, seed := range [][2]string{{"i", "1"}, {"s", "x"}, {"o.b", "true"}, {"l", "[1]"}, {"x.y.z", "{}"}, {"..", ""}, {"o.c", "1"}, {"x", "1e999"}, {"x", `"\ud800"`}} {
		f.Add(seed[0], seed[1])
	}
	fuzzbound.Run(f, func(t *testing.T, path, text string) {
		v, err := s.ParseField(path, text)
		if err != nil {
			if !fault.Is(err, fault.Input) {
				t.Fatalf("ParseField = %v", err)
			}
			return
		}
		if _, err := (Payload{}).With(path, v); err != nil && !strings.Contains(err.Error(), "longer than") && !strings.Contains(err.Error(), "levels deep") {
			t.Fatalf("With refuses what ParseField read: %v", err)
		}
	})
}
