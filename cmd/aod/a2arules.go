package main

import (
	"context"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// a2aRules are what the operator says of single units as agents, by their names.
type a2aRules map[string]config.UnitA2A

// a2aRulesOf returns the rules of those units that have some.
func a2aRulesOf(c *config.Config) a2aRules {
	rules := a2aRules{}
	for name, u := range c.Unit {
		rules[name] = u.A2A
	}
	return rules
}

func noAgent() error { return fault.New(fault.NotFound, "there is no such agent") }

// shows returns a NotFound fault if the context's client may not know of an agent.
func (r a2aRules) shows(ctx context.Context, unit string) error {
	rule, known := r[unit]
	if known && (!rule.Enabled || rule.Private && !mayAsk(ctx, rule)) {
		return noAgent()
	}
	return nil
}

// admits returns a fault if the context's client may not ask an agent: Forbidden where it may know of it.
func (r a2aRules) admits(ctx context.Context, unit string) error {
	if err := r.shows(ctx, unit); err != nil {
		return err
	}
	if rule, known := r[unit]; known && !mayAsk(ctx, rule) {
		return fault.New(fault.Forbidden, "the token %q may not ask this agent", access.ClientOf(ctx)).
			WithHint("the operator names those that may in unit.%s.a2a.tokens", unit)
	}
	return nil
}

// mayAsk reports whether a rule has the context's client among those that may ask. The server's own token has no name.
func mayAsk(ctx context.Context, rule config.UnitA2A) bool {
	name := access.ClientOf(ctx)
	switch {
	case access.IsAnonymous(ctx):
		return false
	case name == "" || len(rule.Tokens) == 0:
		return true
	}
	return slices.Contains(rule.Tokens, name)
}

// visible leaves out the units of which the context's client may not know.
func (r a2aRules) visible(ctx context.Context, all []api.Unit) []api.Unit {
	return slices.DeleteFunc(slices.Clone(all), func(u api.Unit) bool { return r.shows(ctx, u.Name) != nil })
}

// rates are those of single units.
func (r a2aRules) rates(all int) map[string]httpwire.Rate {
	rates := map[string]httpwire.Rate{}
	for name, rule := range r {
		rate := httpwire.Rate{Minute: rule.Rate, Burst: rule.Burst}
		if rule.Rate == config.UnitsOwn {
			rate.Minute = all
		}
		rates[name] = rate
	}
	return rates
}
