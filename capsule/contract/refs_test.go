package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestReferencesAreFollowed(t *testing.T) {
	for _, c := range []struct {
		name, raw, payload string
		want               []string
	}{
		{
			name:    "one after the other",
			raw:     `{"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/c"},"c":{"type":"int"}},"input":{"properties":{"x":{"$ref":"#/definitions/a"}}},"output":{}}`,
			payload: `{"x":"y"}`,
			want:    []string{"/x|expected integer, got string|"},
		},
		{
			name:    "into the other side",
			raw:     `{"input":{"properties":{"x":{"$ref":"#/output/properties/y"}}},"output":{"properties":{"y":{"type":"bool"}}}}`,
			payload: `{"x":"y"}`,
			want:    []string{"/x|expected boolean, got string|"},
		},
		{
			name:    "into a list",
			raw:     `{"input":{"properties":{"l":{"items":[{"type":"int"},{"$ref":"#/input/properties/l/items/0"}]}}},"output":{}}`,
			payload: `{"l":[1,"x"]}`,
			want:    []string{"/l/1|expected integer, got string|"},
		},
		{
			name:    "into what a newer keyword holds",
			raw:     `{"input":{"properties":{"l":{"prefixItems":[{"type":"int"}]},"x":{"$ref":"#/input/properties/l/prefixItems/0"}}},"output":{}}`,
			payload: `{"x":"y"}`,
			want:    []string{"/x|expected integer, got string|"},
		},
		{
			name:    "to something that is always false",
			raw:     `{"definitions":{"never":false},"input":{"properties":{"x":{"$ref":"#/definitions/never"}}},"output":{}}`,
			payload: `{"x":1}`,
			want:    []string{"/x|is not allowed by the contract|"},
		},
		{
			name:    "to something that is always true",
			raw:     `{"definitions":{"any":true},"input":{"additionalProperties":{"$ref":"#/definitions/any"}},"output":{}}`,
			payload: `{"x":1}`,
		},
		{
			name:    "by a name with a slash, a tilde, a space and a per cent sign",
			raw:     `{"definitions":{"a/b~c d%":{"type":"int"}},"input":{"properties":{"x":{"$ref":"#/definitions/a~1b~0c%20d%25"}}},"output":{}}`,
			payload: `{"x":"y"}`,
			want:    []string{"/x|expected integer, got string|"},
		},
		{
			name:    "through fields, for ever",
			raw:     `{"definitions":{"a":{"properties":{"b":{"$ref":"#/definitions/b"}},"additionalProperties":false},"b":{"properties":{"a":{"$ref":"#/definitions/a"}},"additionalProperties":false}},"input":{"$ref":"#/definitions/a"},"output":{}}`,
			payload: `{"b":{"a":{"b":{"b":1}}}}`,
			want:    []string{"/b/a/b/b|unexpected field \"b\"|"},
		},
		{
			name:    "to the side itself",
			raw:     `{"input":{"properties":{"n":{"type":"int"},"again":{"items":{"$ref":"#/input"}}}},"output":{}}`,
			payload: `{"again":[{"again":[{"n":"x"}]}]}`,
			want:    []string{"/again/0/again/0/n|expected integer, got string|"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			contract, found := Parse([]byte(c.raw))
			if contract == nil {
				t.Fatal(found)
			}
			wantFindings(t, contract.Input.Validate(payload(t, c.payload)), c.want)
		})
	}
}

func TestAMistakeBehindAReferenceIsToldOnceWhereItStands(t *testing.T) {
	const raw = `{"definitions":{"a":{"type":"nonsense"}},"input":{"properties":{"x":{"$ref":"#/definitions/a"},"y":{"$ref":"#/definitions/a"}}},"output":{"$ref":"#/definitions/a"}}`
	_, found := Parse([]byte(raw))
	wantFindings(t, fault.Errors(found), []string{"/definitions/a/type|isn't a type|"})
}

func TestAReferenceToWhatIsNoSchemaIsAMistake(t *testing.T) {
	for ref, want := range map[string]string{
		"#/title":               "expected a schema (an object), got string",
		"#/input/required":      "expected a schema (an object), got array",
		"#/input/properties/l/": "isn't there",
	} {
		t.Run(ref, func(t *testing.T) {
			_, found := Parse(fmt.Appendf(nil, `{"title":"t","input":{"required":["a"],"properties":{"l":{},"x":{"$ref":%q}}},"output":{}}`, ref))
			if len(found) == 0 || !strings.Contains(found[0].Message, want) {
				t.Errorf("%v", found)
			}
		})
	}
}

func TestContractsCanBeReadManyWays(t *testing.T) {
	schema := compiled(t, `{"definitions":{"never":{"$ref":"#/definitions/never2"},"never2":{"properties":{"a":{"$ref":"#"}}}},"properties":{"a":{"$ref":"#/definitions/never"},"n":{"type":"int"}}}`)
	wantFindings(t, schema.Validate(payload(t, `{"a":{"a":{"n":"x"}}}`)), []string{"/a/a/n|expected integer, got string|"})
}
