// Package outside has what units write of the world outside of their sandboxes: lists of hosts, and names of upstreams.
//
// It must not know who asks.
//
// Its Go API may change with every release: see docs/stability.md.
package outside

import (
	"fmt"
	"net/netip"
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

// Exception is a host that may be at an address which isn't public.
type Exception struct {
	Host string
	Addr netip.Addr // where it is; the zero Addr: wherever its name leads
}

// ParseException reads host, or host=address. The error is an Input fault that quotes the text.
func ParseException(text string) (Exception, error) {
	host, address, fixed := strings.Cut(text, "=")
	e := Exception{Host: strings.ToLower(host)}
	if why := WhyNoHost(e.Host); why != "" {
		return Exception{}, wrong(text, why,
			"write the name of a host, or a name and its address: db.internal=10.0.0.5")
	}
	if fixed {
		addr, err := netip.ParseAddr(address)
		if err != nil || addr.Zone() != "" {
			return Exception{}, wrong(text, "has no address behind =",
				"write a name and its address: db.internal=10.0.0.5")
		}
		e.Addr = addr.Unmap()
	}
	return e, nil
}

// String returns the exception as ParseException reads it.
func (e Exception) String() string {
	if !e.Addr.IsValid() {
		return e.Host
	}
	return e.Host + "=" + e.Addr.String()
}
