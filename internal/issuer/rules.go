package issuer

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
)

// Grant is what a person may do.
type Grant = access.Grant

// Claims name the claims about people that count; "": none.
type Claims struct {
	Team  string // the teams
	Scope string // what gives scopes
	Group string // the groups, as questions name their approvers
}

// Person is somebody of whom an issuer has told.
type Person struct {
	Issuer  string   `json:"issuer"`
	Subject string   `json:"subject"`
	Teams   []string `json:"teams,omitempty"` // the values of Claims.Team, and so on
	Scopes  []string `json:"scopes,omitempty"`
	Groups  []string `json:"groups,omitempty"`

	Until time.Time `json:"-"` // when the token ends that says so
	nonce string
}

// Text is what is stored of a person.
func (p Person) Text() []byte {
	raw, _ := json.Marshal(p) // texts can always be written
	return raw
}

// ParsePerson reads what Text wrote.
func ParsePerson(raw []byte) (p Person, err error) {
	err = json.Unmarshal(raw, &p)
	return p, err
}

func (c Claims) of(claims map[string]any) Person {
	return Person{
		Teams: valuesOf(claims, c.Team), Scopes: valuesOf(claims, c.Scope), Groups: valuesOf(claims, c.Group),
	}
}

// Rules say what people may do by the values of their claims.
type Rules struct {
	Known   func() []string           // the teams that there are
	Teams   map[string]string         // teams by values; none: a value is the team's name
	Scopes  map[string][]access.Scope // likewise
	Default []access.Scope            // that everybody has
	Limits  access.Limits             // of each person
}

// Grant returns what a person may do: in the teams of theirs that there are. The errors are Forbidden faults.
func (r Rules) Grant(p Person) (Grant, error) {
	name, ok := api.UserOf(p.Subject)
	if !ok {
		return Grant{}, fault.New(fault.Unauthorized, "who signed in has no name").WithHint("sign in again")
	}
	grant := Grant{Name: name, Scopes: slices.Clone(r.Default), Limits: r.Limits, Groups: p.Groups}
	for _, value := range p.Teams {
		if team := r.team(value); team != "" && !slices.Contains(grant.Teams, team) {
			grant.Teams = append(grant.Teams, team)
		}
	}
	for _, value := range p.Scopes {
		for _, scope := range r.Scopes[value] {
			if !slices.Contains(grant.Scopes, scope) {
				grant.Scopes = append(grant.Scopes, scope)
			}
		}
	}
	switch {
	case len(grant.Teams) == 0:
		return Grant{}, fault.New(fault.Forbidden, "%s is of no team that this server has", name).
			WithHint("the operator's setting oidc.team names the claim, and `teams` the teams; sign in again then")
	case len(grant.Scopes) == 0:
		return Grant{}, fault.New(fault.Forbidden, "%s has no scope here", name).
			WithHint("the operator gives scopes to people by the setting oidc.scopes; sign in again after a change")
	}
	slices.Sort(grant.Teams)
	return grant, nil
}

// team is the one that a value of the claim means; "": none that there is.
func (r Rules) team(value string) string {
	if len(r.Teams) > 0 {
		value = r.Teams[value]
	}
	if !slices.Contains(r.Known(), value) {
		return ""
	}
	return value
}
