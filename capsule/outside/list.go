package outside

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// MaxRules is how many entries the list of a unit may have.
const MaxRules = 64

// List is what a unit may reach. The zero List allows nothing.
type List []Rule

// ParseList reads entries, each once. Every finding says which entry is wrong, by its place in
// the pointer: "/3".
func ParseList(entries []string) (List, []fault.Finding) {
	var list List
	var findings []fault.Finding
	if len(entries) > MaxRules {
		return nil, []fault.Finding{{
			Message: fmt.Sprintf("there are %d hosts, the most is %d", len(entries), MaxRules),
			Hint:    "cover several with *.host",
		}}
	}
	for i, entry := range entries {
		r, err := ParseRule(entry)
		if err != nil {
			public := fault.Public(err)
			findings = append(findings,
				fault.Finding{Pointer: fmt.Sprintf("/%d", i), Message: public.Msg, Hint: public.Hint})
		} else if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list, findings
}

// Strings returns the entries as they are written.
func (l List) Strings() []string {
	texts := make([]string, len(l))
	for i, r := range l {
		texts[i] = r.String()
	}
	return texts
}

// String returns the list as it is written in YAML.
func (l List) String() string { return "[" + quoted(l.Strings()) + "]" }

// quoted joins entries. What begins with a * is quoted, since YAML means something else by it.
func quoted(entries []string) string {
	texts := slices.Clone(entries)
	for i, text := range texts {
		if strings.HasPrefix(text, "*") {
			texts[i] = `"` + text + `"`
		}
	}
	return strings.Join(texts, ", ")
}

// Covers reports whether all that a rule allows is allowed by the list.
func (l List) Covers(r Rule) bool {
	return slices.ContainsFunc(l, func(own Rule) bool { return own.Covers(r) })
}

// Beyond returns the rules that allow something which the cap doesn't.
func (l List) Beyond(most List) List {
	return slices.DeleteFunc(slices.Clone(l), most.Covers)
}
