package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// OIDCConfig holds the settings for people whom an issuer of OpenID Connect signs in.
type OIDCConfig struct {
	Issuer       string // "": there is none
	Audience     string
	ClientID     string // as the audience by default
	PageClient   string // as the ClientID by default
	ClientSecret string // the name of a secret of the page's; "": it has none
	LoginScopes  []string
	Redirect     string // to the page; "": as the request has it

	Team  string            // a claim
	Teams map[string]string // by the claim's values; none: the values are names of teams
	Group string            // a claim; "": people have no groups

	ScopeClaim    string            // "": everybody has DefaultScopes
	Scopes        map[string]string // scopes with commas, by the claim's values
	DefaultScopes []string

	Rate int // requests of a person in a minute; 0 is no bound
	Runs int // runs that a person asked for and that go on or wait; 0 is no bound
}

const (
	oidcKey      = "oidc"
	oidcScopeKey = "scopes"
)

// settings is the table of the block oidc. It can be set in the file only.
func (o *OIDCConfig) settings() []setting {
	return []setting{
		{"issuer", issuerURL(&o.Issuer), "", "the issuer's address, as the claim iss of its tokens has it; https"},
		{"audience", plainText(&o.Audience, "audience"), "", "for whom tokens must be: one of the claim aud"},
		{
			"client_id", plainText(&o.ClientID, "client"), "",
			"as which aod login signs in, without a secret; the audience by default",
		},
		{
			"page_client_id", plainText(&o.PageClient, "client"), "",
			"as which the page signs people in; the client_id by default",
		},
		{
			"client_secret", secretName(&o.ClientSecret), "",
			"the secret of the page's client, if the issuer wants one: the name of its file, never the secret",
		},
		{
			"login_scopes", plainTexts(&o.LoginScopes, "scopes"), "openid,offline_access",
			"what people are asked for when they sign in; some issuers give groups for a scope of their own",
		},
		{
			"redirect", redirectURL(&o.Redirect), "",
			"where the issuer sends browsers back to the page: an address that ends in /ui/callback; as a request " +
				"has it by default",
		},
		{"team", plainText(&o.Team, "claim"), "", "the claim that names the team, or a list of teams"},
		{
			"teams", teamsByValue(&o.Teams), "",
			"teams by values of that claim, of which no other one counts then; by default a value is the team's name",
		},
		{"group", plainText(&o.Group, "claim"), "", "the claim of groups, which approvers of questions may be"},
		{"rate", integer{&o.Rate, 0, maxRate}, "0", "requests of a person in a minute; 0 is no bound"},
		{"runs", integer{&o.Runs, 0, maxRate}, "0", "runs of a person that go on or wait; 0 is no bound"},
	}
}

// scopes is the table of the block scopes of oidc. It can be set in the file only.
func (o *OIDCConfig) scopes() []setting {
	return []setting{
		{"claim", plainText(&o.ScopeClaim, "claim"), "", "the claim that gives scopes"},
		{"map", scopesByValue(&o.Scopes), "", "scopes by values of that claim: a list of them, or one"},
		{"default", scopeNames(&o.DefaultScopes), "", "scopes that everybody has who is of a team"},
	}
}

// provesAs reports whether the same claims of the same issuer tell of people.
func (o *OIDCConfig) provesAs(other OIDCConfig) bool {
	return o.Issuer != "" && o.Issuer == other.Issuer && o.Audience == other.Audience && o.Team == other.Team &&
		o.Group == other.Group && o.ScopeClaim == other.ScopeClaim
}

// takeRules takes over what people may do.
func (o *OIDCConfig) takeRules(other OIDCConfig) {
	o.Teams, o.Scopes, o.DefaultScopes, o.Rate, o.Runs = other.Teams, other.Scopes, other.DefaultScopes, other.Rate,
		other.Runs
}

// oidc reads the block oidc.
func (f *file) oidc(line int, n *yaml.Node) {
	keys := f.readers(oidcKey, f.config.OIDC.settings())
	keys[oidcScopeKey] = f.block(join(oidcKey, oidcScopeKey), f.config.OIDC.scopes())
	f.object(oidcKey, line, n, keys)
	f.config.sources[oidcKey] = f.at(line)
}

// checkOIDC wants what an issuer needs, and nothing without one.
func (l *loader) checkOIDC() {
	o := &l.config.OIDC
	at, set := l.config.sources[oidcKey]
	if !set {
		return
	}
	o.ClientID = cmp.Or(o.ClientID, o.Audience)
	o.PageClient = cmp.Or(o.PageClient, o.ClientID)
	for _, c := range []struct{ key, value string }{{"issuer", o.Issuer}, {"audience", o.Audience}, {"team", o.Team}} {
		if c.value == "" {
			l.report(at, "oidc: "+c.key+" is missing", "an issuer needs issuer, audience and team")
		}
	}
	switch {
	case len(o.Scopes) == 0 && len(o.DefaultScopes) == 0:
		l.report(at, "oidc: nobody would have a scope",
			"write scopes: {default: [read, run]}, or scopes: {claim: groups, map: {aod-users: [read, run]}}")
	case (o.ScopeClaim == "") != (len(o.Scopes) == 0):
		l.report(at, "oidc: scopes has one of claim and map, and needs both", "write both, or neither")
	}
	if l.config.NoAuth {
		l.contradiction("no_auth", oidcKey, "nobody has to sign in", "leave out no_auth, or oidc")
	}
	known := l.config.KnownTeams()
	for _, value := range slices.Sorted(maps.Keys(o.Teams)) {
		if team := o.Teams[value]; !slices.Contains(known, team) {
			l.report(l.config.sources[join(oidcKey, teamsKey)],
				fmt.Sprintf("oidc.teams: %s has the team %s, which isn't one of teams", fault.Quote(value), team),
				"add it to the setting teams")
		}
	}
}

// KnownTeams are the teams of which people may be: those of the file; where it has none, the default one.
func (c *Config) KnownTeams() (names []string) {
	for name := range c.Teams {
		names = append(names, name)
	}
	if len(names) == 0 {
		names = []string{api.DefaultTeam}
	}
	return names
}

// issuerURL is the address of an issuer.
func issuerURL(into *string) single {
	const advice = "write https://HOST/PATH as the issuer writes it; http is for 127.0.0.1 alone"
	return single{into, "URL", advice, func(text string) (string, error) {
		u, err := parsePlain(text)
		switch {
		case err != nil:
			return "", err
		case u.Scheme != "https" && !httpwire.IsLoopback(u.Hostname()):
			return "", errors.New("an issuer elsewhere is asked by https")
		}
		return text, nil
	}}
}

// callbackPath ends the address to which an issuer sends browsers back.
const callbackPath = "/ui/callback"

// redirectURL is the address of the page's callback, or nothing.
func redirectURL(into *string) single {
	return single{into, "URL", "write https://HOST" + callbackPath, optional(func(text string) (string, error) {
		u, err := parsePlain(text)
		if err == nil && !strings.HasSuffix(u.Path, callbackPath) {
			err = fmt.Errorf("%s doesn't end in %s", fault.Quote(text), callbackPath)
		}
		return text, err
	})}
}

// parsePlain reads the address of something by HTTP, with no more than a path.
func parsePlain(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, errors.New("it isn't the address of a server") // it may have a password
	}
	if u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		return nil, fmt.Errorf("%s goes on after its path", fault.Quote(text))
	}
	return u, nil
}

// plainText is a text of some printable characters, or nothing.
func plainText(into *string, kind string) single {
	return single{into, kind, "write a text of up to 200 bytes", optional(checkLabel)}
}

// plainTexts is a list of such texts.
func plainTexts(into *[]string, kind string) list {
	return list{into, kind, "write a list of texts of up to 200 bytes, such as [openid, groups]", ",", checkLabel}
}

// secretName is the name of a secret, or nothing.
func secretName(into *string) single {
	return single{into, "secret", "write the name of a secret: aod secret set NAME keeps it", optional(checkSecretName)}
}

func checkSecretName(name string) (string, error) {
	if !secrets.NameRule().MatchString(name) {
		return "", fmt.Errorf("%s can't be the name of a secret", fault.Quote(name))
	}
	return name, nil
}

// scopeNames is a list of scopes.
func scopeNames(into *[]string) list {
	return words(into, "scopes", scopeWords(), "a scope")
}

func scopeWords() (all []string) {
	for _, scope := range access.Scopes {
		all = append(all, string(scope))
	}
	return all
}

// teamsByValue maps values of a claim to teams.
func teamsByValue(into *map[string]string) mapping {
	return mapping{
		into: into, name: "teams by values",
		advice: "write values with teams' names, such as {/aod/research: research}",
		takes:  func(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" },
		check: func(value, team string) error {
			if !api.IsGroup(value) {
				return fmt.Errorf("%s can't be the value of a claim", fault.Quote(value))
			}
			return api.CheckTeam(team)
		},
	}
}

// scopesByValue maps values of a claim to scopes.
func scopesByValue(into *map[string]string) mapping {
	return mapping{
		into: into, name: "scopes by values",
		advice: "write values with scopes, such as {aod-users: [read, run], aod-admins: admin}",
		takes: func(n *yaml.Node) bool {
			return n.Kind == yaml.SequenceNode || n.Kind == yaml.ScalarNode && !isNull(n)
		},
		check: func(value, scopes string) error {
			if !api.IsGroup(value) {
				return fmt.Errorf("%s can't be the value of a claim", fault.Quote(value))
			}
			_, err := access.ParseScopes([]string{scopes})
			return err
		},
	}
}
