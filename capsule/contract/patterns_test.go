package contract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLookaheadsAtTheStartAreTakenOff(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		excluded      []string
		rest          string
	}{
		{"none", `^a+$`, nil, `^a+$`},
		{"one", `^(?!b)a`, []string{`^(?:b)`}, `^a`},
		{"several", `^(?!\.)(?!.*\.\.)x$`, []string{`^(?:\.)`, `^(?:.*\.\.)`}, `^x$`},
		{"a group in it", `^(?!(a|b)+$)c`, []string{`^(?:(a|b)+$)`}, `^c`},
		{"brackets in a class", `^(?![)(\]]|[^)]$)c`, []string{`^(?:[)(\]]|[^)]$)`}, `^c`},
		{"a bracket that begins a class", `^(?![])]+$)c`, []string{`^(?:[])]+$)`}, `^c`},
		{"one that begins what a class excludes", `^(?![^])]+$)c`, []string{`^(?:[^])]+$)`}, `^c`},
		{"a bracket that opens within a class", `^(?!b)[[|]a`, []string{`^(?:b)`}, `^[[|]a`},
		{"a choice after a class", `^(?!b)[]]|a`, nil, `^(?!b)[]]|a`},
		{"an escaped choice", `^(?!b)\||a`, nil, `^(?!b)\||a`},
		{"an escape at its end", `^(?!b\`, nil, `^(?!b\`},
		{"nothing but it", `^(?!b)`, []string{`^(?:b)`}, `^`},
		{"an escaped bracket", `^(?!\))c`, []string{`^(?:\))`}, `^c`},
		{"choices within a group", `^(?!b)(a|c)`, []string{`^(?:b)`}, `^(a|c)`},
		{"a choice in a class", `^(?!b)[a|c]`, []string{`^(?:b)`}, `^[a|c]`},
		{"a choice as a whole stays", `^(?!b)a|c`, nil, `^(?!b)a|c`},
		{"a positive one stays", `^(?=b)a`, nil, `^(?=b)a`},
		{"one further on stays", `^a(?!b)`, nil, `^a(?!b)`},
		{"without an anchor it stays", `(?!b)a`, nil, `(?!b)a`},
		{"one without an end stays", `^(?!b`, nil, `^(?!b`},
	} {
		t.Run(c.name, func(t *testing.T) {
			excluded, rest := notAhead(c.pattern)
			if diff := cmp.Diff(c.excluded, excluded); diff != "" || rest != c.rest {
				t.Errorf("rest %s %s", rest, diff)
			}
		})
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct{ name, schema, payload, want string }{
		{"an excluded form", `{"properties":{"a":{"pattern":"^(?!x)[a-z]+$"}}}`, `{"a":"xa"}`, "/a|is of a form that the contract excludes|"},
		{"the rest of it", `{"properties":{"a":{"pattern":"^(?!x)[a-z]+$"}}}`, `{"a":"1"}`, "/a|does not match the pattern ^[a-z]+$|"},
		{"what fits", `{"properties":{"a":{"pattern":"^(?!x)[a-z]+$"}}}`, `{"a":"ax"}`, ""},
		{"what isn't a string", `{"properties":{"a":{"pattern":"^(?!x)[a-z]+$"}}}`, `{"a":7}`, ""},
		{"beside an allOf", `{"properties":{"a":{"pattern":"^(?!x)","allOf":[{"maxLength":1}]}}}`, `{"a":"xy"}`, "/a|is of a form that the contract excludes|"},
		{"letters by their numbers", `{"properties":{"a":{"pattern":"^[\\u0061-\\u00e9]\\ud83d\\uDE00\\u{1F600}\\cJ\\/$"}}}`, `{"a":"é😀😀\n/"}`, ""},
		{"none of them", `{"properties":{"a":{"pattern":"^[\\u0061-\\u00e9]$"}}}`, `{"a":"ê"}`, `/a|does not match the pattern ^[\x{0061}-\x{00e9}]$|`},
		{"a backslash before u", `{"properties":{"a":{"pattern":"^\\\\u0061\\Q\\u0062\\E$"}}}`, `{"a":"\\u0061\\u0062"}`, ""},
		{"names by numbers of letters", `{"patternProperties":{"^\\u00e9":{"type":"int"}},"additionalProperties":false}`, `{"éa":"x"}`, "/éa|expected integer, got string|"},
		{"what an expression never has", `{"properties":{"a":{"pattern":"^(?!\\u0078)"}}}`, `{"a":"x"}`, "/a|is of a form that the contract excludes|"},
		{"names by a pattern", `{"patternProperties":{"^n_":{"type":"int"}},"additionalProperties":false}`, `{"n_a":"x"}`, "/n_a|expected integer, got string|"},
		{"a name of no pattern", `{"patternProperties":{"^n_":{"type":"int"}},"additionalProperties":false}`, `{"m":1}`, `/m|unexpected field "m"|spelling`},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := compiled(t, c.schema).Validate(payload(t, c.payload))
			if c.want == "" {
				wantFindings(t, found, nil)
				return
			}
			wantFindings(t, found[:1], []string{c.want})
		})
	}
}

func TestTheSizeOfAllPartsOfAPatternCounts(t *testing.T) {
	_, found := Compile([]byte(`{"properties":{"a":{"pattern":"^(?!` + strings.Repeat("(a{1000})", 30) + `)x"}}}`))
	wantFindings(t, found, []string{"/properties/a/pattern|too large|smaller"})
}

func TestAPatternOfOneSchemaIsBoundedAgainstAllTexts(t *testing.T) {
	s := compiled(t, `{"additionalProperties":{"pattern":"^(?!(x+x+){100}y)(x+x+){100}$"}}`)
	p := payload(t, `{"a":"`+strings.Repeat("x", 1_000_000)+`"}`)
	start := processorTime()
	found := s.Validate(p)
	if took := processorTime() - start; took > 2*time.Second {
		t.Errorf("Validate took %v", took)
	}
	wantFindings(t, found, []string{"|too many steps|file"})
}

func TestAllExpressionsOfAContractHaveABoundTogether(t *testing.T) {
	fields := make([]string, 20)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"f%d":{"pattern":%q}`, i, strings.Repeat("(a{1000})", 14))
	}
	if _, found := Compile([]byte(`{"properties":{` + strings.Join(fields[:10], ",") + `}}`)); len(found) > 0 {
		t.Errorf("ten are refused: %v", found)
	}
	_, found := Compile([]byte(`{"properties":{` + strings.Join(fields, ",") + `}}`))
	wantFindings(t, found, []string{"/properties/f4/pattern|too large together|fewer"})
}
