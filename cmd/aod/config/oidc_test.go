package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const anIssuer = "issuer: https://login.example.com/realms/Acme/, audience: aod, team: groups"

func TestPeopleOfAnIssuer(t *testing.T) {
	c := mustLoad(t, given{file: `teams: {research: {}, ops: {}}
oidc:
  issuer: https://login.example.com/realms/Acme/
  audience: aod
  client_secret: oidc
  redirect: https://aod.example.com/x/ui/callback
  team: groups
  teams: {/aod/research: research}
  scopes:
    claim: realm_access.roles
    map: {aod-admins: admin, aod-users: [read, run]}
    default: [approve]
`})
	want := OIDCConfig{
		Issuer: "https://login.example.com/realms/Acme/", Audience: "aod", ClientID: "aod", PageClient: "aod", ClientSecret: "oidc",
		LoginScopes: []string{"openid", "offline_access"}, Redirect: "https://aod.example.com/x/ui/callback",
		Team: "groups", Teams: map[string]string{"/aod/research": "research"}, ScopeClaim: "realm_access.roles",
		Scopes: map[string]string{"aod-admins": "admin", "aod-users": "read,run"}, DefaultScopes: []string{"approve"},
	}
	if diff := cmp.Diff(want, c.OIDC); diff != "" {
		t.Error(diff)
	}
	if known := c.KnownTeams(); len(known) != 2 || !slices.Contains(known, "ops") {
		t.Errorf("teams: %q", known)
	}
	c = mustLoad(t, given{file: "oidc: {" + anIssuer + ", teams: {'4711': default}, scopes: {default: [read]}}"})
	if known := c.KnownTeams(); !slices.Equal(known, []string{"default"}) {
		t.Errorf("without teams: %q", known)
	}
	if at := source(c, "oidc.scopes.default"); at != "aod.yaml:1" {
		t.Errorf("the scopes come from %s", at)
	}
}

func TestSettingsOfPeopleThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "oidc: issuer is missing",
		"{issuer: 'https://a.example', scopes: {default: [read]}}":                      "oidc: audience is missing",
		"{issuer: 'http://a.example'}":                                                  "is asked by https",
		"{issuer: 'https://u:p@a.example'}":                                             "isn't the address of a server",
		"{issuer: 'file:///etc/passwd'}":                                                "isn't the address of a server",
		"{issuer: 'https://a.example/?x=1'}":                                            "goes on after its path",
		"{" + anIssuer + "}":                                                            "nobody would have a scope",
		"{" + anIssuer + ", scopes: {claim: groups, default: [read]}}":                  "needs both",
		"{" + anIssuer + ", scopes: {map: {x: read}}}":                                  "needs both",
		"{" + anIssuer + ", scopes: {default: [root]}}":                                 "isn't a scope",
		"{" + anIssuer + ", scopes: {claim: groups, map: {x: [read, root]}}}":           "no scope",
		"{" + anIssuer + ", scopes: {claim: groups, map: {x: {read: run}}}}":            "can't be a map",
		"{" + anIssuer + ", teams: {x: research}, scopes: {default: [read]}}":           "isn't one of teams",
		"{" + anIssuer + ", teams: {x: Research}, scopes: {default: [read]}}":           "not a valid team name",
		"{" + anIssuer + ", redirect: 'https://a.example/', scopes: {default: [read]}}": "doesn't end in /ui/callback",
		"{" + anIssuer + ", client_secret: '../x', scopes: {default: [read]}}":          "can't be the name of a secret",
		"{" + anIssuer + ", scopes: {default: [read]}}\nno_auth: true":                  "nobody has to sign in",
		"{" + anIssuer + ", scopes: {default: [read]}, algorithms: [HS256]}":            `no setting "oidc.algorithms"`,
	} {
		_, err := load(t, given{file: "oidc: " + text})
		if said := strings.Join(findings(t, err), "\n"); !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %q", text, said, want)
		}
	}
	mustLoad(t, given{file: "oidc: {issuer: 'http://127.0.0.1:5556/dex', audience: aod, team: groups, scopes: {default: [read]}}"})
}
