package gateway

import (
	"cmp"
	"math"
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
	limits catalog.Limits
	routes []route
}

// route is a provider's model that may answer.
type route struct {
	use      catalog.Use
	provider catalog.Provider
	script   *script.Script // answers in the provider's place; nil: the provider does
	timeouts catalog.Timeouts
	price    *catalog.Price // of what it answers; nil: nobody knows
	list     *catalog.Price // by which it is compared; nil: likewise
	said     *translated    // in its dialect; nil: it speaks the request's own
}

// targetOf finds what a request is for. Those who speak its dialect come first. The error is a *Refusal.
func targetOf(known *configured, s *Session, q *request) (t target, err error) {
	if t.model, err = s.model(&known.Catalog, q.model); err != nil {
		return t, err
	}
	t.limits = known.Limits(t.model)
	var others []route
	for _, use := range t.model.Use {
		p := known.Providers[use.Provider]
		r := route{
			use: use, provider: p, script: cmp.Or(s.Script, known.scripts[use.Provider]),
			timeouts: t.model.Timeouts.Over(p.Timeouts),
			price:    t.model.PriceOf(use), list: known.ListPrice(t.model, use),
		}
		if p.Speaks(q.dialect.name) {
			t.routes = append(t.routes, r)
		} else if len(translatable(q.dialect.name, p)) > 0 {
			others = append(others, r)
		}
	}
	if t.routes = append(t.routes, others...); len(t.routes) > 0 {
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
	most := t.limits.MaxOutput
	if own > 0 {
		most = min(most, own)
	}
	return most
}

// isPriced reports whether it is known what each answer costs.
func (t *target) isPriced() bool {
	return !slices.ContainsFunc(t.routes, func(r route) bool { return r.price == nil })
}

// order puts the routes in the order in which they are asked.
func (t *target) order(q *request) {
	if t.model.Order != catalog.Cheapest {
		return
	}
	cost := func(r route) int64 {
		if r.list == nil {
			return math.MaxInt64
		}
		input, _ := q.inputBound(r.kind(), t.limits.Context)
		return worst(input, q.output(), r.list).Cost
	}
	slices.SortStableFunc(t.routes, func(a, b route) int { return cmp.Compare(cost(a), cost(b)) })
}

// worst finds the worst that a request can take, whoever of the providers answers. The error
// is a *Refusal where nobody knows and a budget holds.
func (t *target) worst(q *request, limited bool) (most ledger.Amount, err error) {
	for _, r := range t.routes {
		bound, known := r.request(q).inputBound(r.kind(), t.limits.Context)
		if !known && limited {
			return ledger.Amount{}, q.refuseUnknown()
		}
		one := worst(bound, q.output(), r.price)
		most.Tokens, most.Cost = max(most.Tokens, one.Tokens), max(most.Cost, one.Cost)
	}
	return most, nil
}

func (r route) kind() catalog.Kind {
	if r.script != nil {
		return catalog.Script
	}
	return r.provider.Kind
}
