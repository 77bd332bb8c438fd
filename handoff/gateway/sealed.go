package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// breach is a way in which a request would reach further than the capsule may, through the
// provider.
type breach struct {
	rule string
	what string // a tool's type, a field's name or a part's type, as it was written
	open string // the word of `allow` that opens it
	// meant is the name that `what` is nearly; "" for another breach, which can be opened.
	meant string
}

// seal refuses what reaches further, unless the model allows it. strict says that only known
// fields go on. The error is a *Refusal.
func (q *request) seal(name string, m catalog.Model, strict bool) error {
	for _, f := range q.fields {
		if isNull(f.value) || harmless[f.name] == string(f.value) {
			continue
		}
		if allows(m.Allow, "field:"+f.name) {
			q.seen.opaque = q.seen.opaque || slices.Contains(bringing, f.name)
			continue
		}
		if reason := q.fieldBreach(f.name, strict); reason != "" {
			return refuseBreach(name, breach{rule: RuleField, what: f.name, open: "field:" + f.name}, reason)
		}
		q.seen.opaque = q.seen.opaque || !slices.Contains(q.dialect.known, f.name)
		if !slices.Contains(q.dialect.parts, f.name) {
			continue
		}
		s := &scan{json: strictjson.NewCursor(f.value), allow: m.Allow, form: q.dialect.image, field: f.name}
		if found := s.all(); found != nil {
			return refuseBreach(name, *found, reasons[found.rule])
		}
		q.seen.add(s.seen)
	}
	return nil
}

// fieldBreach returns why a field at the top is refused, "" where it isn't.
func (q *request) fieldBreach(name string, strict bool) string {
	switch {
	case name == "store" && q.dialect.name == catalog.Responses: // it is set to false anyway
	case slices.Contains(sealed, name) || harmless[name] != "":
		return "with it the provider would reach, keep or spend more than this run may"
	case strict && !slices.Contains(q.dialect.known, name):
		return "nobody knows what the provider would do with it"
	}
	return ""
}

var reasons = map[string]string{
	RuleTool: "the provider itself would run it",
	RulePart: "nobody knows what the provider would do with it",
	RuleURL:  "the provider would fetch it: send a data: URL with the content",
	RuleFile: "it is kept at the provider: send the content itself",
}

func refuseBreach(model string, b breach, reason string) *Refusal {
	if b.meant != "" {
		return refuseCase(b.what, b.meant)
	}
	what := map[string]string{
		RuleTool: "tools of type", RulePart: "parts of type", RuleURL: "an address in",
		RuleFile: "the reference", RuleField: "the field",
	}[b.rule]
	return refuse(http.StatusForbidden, b.rule, "%s %s can't be sent: %s", what, fault.Quote(b.what), reason).
		hint("whoever runs this server can open it with models.%s.allow: [%s]", model, b.open)
}

// allows reports whether an operator has opened something.
func allows(allow []string, word string) bool { return slices.Contains(allow, word) }

// allowsTool reports it of a tool's type, in all its versions: web_search opens
// web_search_20250305 and web_search_preview.
func allowsTool(allow []string, typ string) bool {
	return slices.ContainsFunc(allow, func(word string) bool {
		word = strings.TrimPrefix(word, "tool:")
		return word == typ || word != "" && strings.HasPrefix(typ, word+"_")
	})
}
