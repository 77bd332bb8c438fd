package api

import (
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// DefaultTeam owns what is made where nobody speaks of teams.
const DefaultTeam = "default"

// Owner is to whom something belongs. Nobody who asks says so: it goes by the token that a request bears.
type Owner struct {
	Team     string `json:"team"`
	Identity string `json:"identity,omitempty"` // "token:NAME" or "user:SUBJECT"; "": the server's own token
}

// OwnerOf returns what is shown of the owner that a team and the name of a token are: nil for DefaultTeam, where By
// says all.
func OwnerOf(team, token string) *Owner {
	if team == DefaultTeam || team == "" {
		return nil
	}
	return &Owner{Team: team, Identity: IdentityOf(token)}
}

// identityOfToken begins the identity of a token, identityOfUser that of a person.
const (
	identityOfToken = "token:"
	identityOfUser  = "user:"
)

// IdentityOfHook begins the identity of a hook, by which programs elsewhere start runs. It stands in the place of the
// name of a token: no token has a name with a colon.
const IdentityOfHook = "hook:"

// IdentityOf returns the identity of whoever has a name here: of the holder of a token, or of a person or a hook, whose
// name is the identity. "" is the server's own token, which has no name.
func IdentityOf(name string) string {
	if name == "" || IsUser(name) || strings.HasPrefix(name, IdentityOfHook) {
		return name
	}
	return identityOfToken + name
}

// maxSubject is how long the subject of a person is, at most (OpenID Connect Core, 2).
const maxSubject = 255

// UserOf returns the name of the person whom an issuer calls so, and whether it can be one: up to 255 visible
// characters of ASCII.
func UserOf(subject string) (name string, ok bool) {
	ok = subject != "" && len(subject) <= maxSubject &&
		!strings.ContainsFunc(subject, func(r rune) bool { return r <= ' ' || r >= 0x7f })
	return identityOfUser + subject, ok
}

// IsUser reports whether a name is that of a person: no token's has a colon.
func IsUser(name string) bool {
	subject, user := strings.CutPrefix(name, identityOfUser)
	_, ok := UserOf(subject)
	return user && ok
}

// TeamOf returns the team of an owner that is shown.
func TeamOf(o *Owner) string {
	if o == nil {
		return DefaultTeam
	}
	return o.Team
}

// InTeam returns the name that a team's unit or schedule has beside those of others.
func InTeam(team, name string) string {
	if team == DefaultTeam || team == "" || strings.HasPrefix(name, team+".") {
		return name
	}
	return team + "." + name
}

var teamRule = lazyregexp.New(`^[a-z0-9]([a-z0-9_-]{0,29}[a-z0-9])?$`)

// CheckTeam returns an Input fault for a text that can't be the name of a team: with a dot after it, it begins the
// names of the team's units and schedules.
func CheckTeam(name string) error {
	if !teamRule().MatchString(name) || name+"." == Reserved {
		return fault.New(fault.Input, "%s is not a valid team name", fault.Quote(name)).
			WithHint("a name has up to 31 characters of a-z, 0-9, `_` and `-`, and begins and ends with a letter or " +
				"a digit; aod is AOD's own")
	}
	return nil
}
