package config

import (
	"reflect"
	"slices"
	"strings"
)

// Change is what reading the settings again comes to.
type Change struct {
	Config  *Config  // that is in force from now on
	Changed []string // keys of settings that are others now; of models and providers those words
	Restart []string // keys of those that are others, and hold when the server is started again
}

// Again returns what changes in a server with the settings of c where next is what was read now. Prices, budgets,
// teams, tokens, webhooks, the policy and what is set for single units hold at once, and what people may do by the same
// claims of the same issuer.
func (c *Config) Again(next *Config) Change {
	now := *c
	now.Unit, now.Teams, now.Tokens = next.Unit, next.Teams, next.Tokens
	now.Policy, now.Uploads, now.sources = next.Policy, next.Uploads, next.sources
	now.Models, now.Providers, now.Hooks, now.Webhooks = next.Models, next.Providers, next.Hooks, next.Webhooks
	now.ModelCost, now.ModelTokens = next.ModelCost, next.ModelTokens
	sameProof := c.OIDC.provesAs(next.OIDC)
	if sameProof {
		now.OIDC.takeRules(next.OIDC)
	}
	change := Change{Config: &now, Changed: []string{}, Restart: []string{}}
	for _, key := range changedKeys(c.Values(), next.Values()) {
		if holdsAtOnce(key) && (sameProof || !strings.HasPrefix(key, oidcKey+".")) {
			change.Changed = append(change.Changed, key)
		} else {
			change.Restart = append(change.Restart, key)
		}
	}
	for key, same := range map[string]bool{
		"models": reflect.DeepEqual(c.Models, next.Models), "providers": reflect.DeepEqual(c.Providers, next.Providers),
	} {
		if !same {
			change.Changed = append(change.Changed, key)
		}
	}
	if !reflect.DeepEqual(c.Upstreams, next.Upstreams) {
		change.Restart = append(change.Restart, "upstreams")
	}
	slices.Sort(change.Changed)
	return change
}

// changedKeys are the keys whose values differ. A team or a unit that one of both doesn't have has the defaults there.
func changedKeys(before, after []Value) (keys []string) {
	values := map[string]Value{}
	for _, v := range before {
		values[v.Key] = v
	}
	for _, v := range after {
		old, known := values[v.Key]
		if delete(values, v.Key); known && old.Value != v.Value || !known && !v.isDefault() {
			keys = append(keys, v.Key)
		}
	}
	for key, v := range values {
		if !v.isDefault() {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// isDefault reports whether nobody has set a value.
func (v Value) isDefault() bool { return v.Source == place{}.String() }

// ofStart are the settings of single units that are read at the start alone.
var ofStart = []string{"model_path", "max_stdin", "require", "modes", "risk_tiers", "refuse_with_200"}

// ofPeople are the settings of oidc that are read again.
var ofPeople = []string{"oidc.teams", "oidc.rate", "oidc.runs", "oidc.scopes.map", "oidc.scopes.default"}

// holdsAtOnce reports whether a setting holds without a restart.
func holdsAtOnce(key string) bool {
	block, _, _ := strings.Cut(key, ".")
	switch block {
	case teamsKey, tokensKey, hooksKey, webhooksKey, "policy", "model_cost", "model_tokens":
		return true
	case oidcKey:
		return slices.Contains(ofPeople, key)
	case "unit":
		last := key[strings.LastIndexByte(key, '.')+1:]
		return !slices.Contains(ofStart, last) && !strings.Contains(key, ".a2a.")
	}
	return false
}
