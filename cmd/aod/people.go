package main

import (
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// issuerOf is the issuer that signs people in; nil: none does.
func issuerOf(settings *reloader) *issuer.Issuer {
	c := settings.config()
	o := c.OIDC
	if o.Issuer == "" {
		return nil
	}
	opts := issuer.Options{
		URL: o.Issuer, Audience: o.Audience, ClientID: o.ClientID, PageClient: o.PageClient, Scopes: o.LoginScopes,
		Logger: settings.logger,
		Claims: issuer.Claims{Team: o.Team, Scope: o.ScopeClaim, Group: o.Group},
		Rules:  rulesOf(settings),
	}
	if o.ClientSecret != "" {
		kept := secrets.Files{Dir: c.Secrets}
		opts.Secret = func() (secrets.Secret, error) { return kept.Read(o.ClientSecret) }
	}
	return issuer.New(opts)
}

// rulesOf are what people may do by the settings in force.
func rulesOf(settings *reloader) issuer.Rules {
	o := settings.config().OIDC
	rules := issuer.Rules{
		Known: func() []string { return settings.config().KnownTeams() },
		Teams: o.Teams, Limits: access.Limits{Rate: o.Rate, Runs: o.Runs},
		Scopes: map[string][]access.Scope{}, Default: scopesOf(o.DefaultScopes...),
	}
	for value, scopes := range o.Scopes {
		rules.Scopes[value] = scopesOf(scopes)
	}
	return rules
}

// scopesOf are scopes that the settings have checked.
func scopesOf(texts ...string) []access.Scope {
	if len(texts) == 0 {
		return nil
	}
	scopes, _ := access.ParseScopes(texts)
	return scopes
}
