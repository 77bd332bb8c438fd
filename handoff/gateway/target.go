package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/handoff/gateway/script"
)

// target is the model that a request is for, with those who may answer.
type target struct {
	model  catalog.Model
	routes []route
}

// route is a provider's model that may answer.
type route struct {
	use      catalog.Use
	provider catalog.Provider
	script   *script.Script // answers in the provider's place; nil: the provider does
	timeouts catalog.Timeouts
}

// targetOf finds what a request is for. The error is a *Refusal.
func targetOf(known *configured, s *Session, q *request) (t target, err error) {
	if t.model, err = s.model(&known.Catalog, q.model); err != nil {
		return t, err
	}
	for _, use := range t.model.Use {
		if p, there := known.Providers[use.Provider]; there && p.Speaks(q.dialect.name) {
			t.routes = append(t.routes, route{
				use: use, provider: p, script: cmp.Or(s.Script, known.scripts[use.Provider]),
				timeouts: t.model.Timeouts.Over(p.Timeouts),
			})
		}
	}
	if len(t.routes) > 0 {
		return t, nil
	}
	var names []string
	for _, d := range known.Dialects(t.model) {
		names = append(names, string(d))
	}
	return t, refuse(http.StatusBadRequest, RuleDialect, "nobody who has the model %s speaks %s", q.model,
		q.dialect.name).
		hint("ask it by %s", strings.Join(names, ", "))
}

// isStrict reports whether a vendor may be asked, of whom every field is known.
func (t *target) isStrict() bool {
	return slices.ContainsFunc(t.routes, func(r route) bool { return !r.provider.AnyField })
}

// mostOutput is the cap of an answer, by the model and by the unit's own; 0 is no own one.
func (t *target) mostOutput(own int64) int64 {
	most := t.model.OutputCap()
	if own > 0 {
		most = min(most, own)
	}
	return most
}

// worst finds the worst that a request can take, whoever of the providers answers. The error
// is a *Refusal where nobody knows and a budget holds.
func (t *target) worst(q *request, limited bool) (ledger.Amount, error) {
	var input int64
	for _, r := range t.routes {
		bound, known := q.inputBound(r.kind(), t.model.Context)
		if !known && limited {
			return ledger.Amount{}, q.refuseUnknown()
		}
		input = max(input, bound)
	}
	return worst(input, q.output(), t.model.Price), nil
}

func (r route) kind() catalog.Kind {
	if r.script != nil {
		return catalog.Script
	}
	return r.provider.Kind
}
