package access

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// What a token can be given.
const (
	maxTeams = 32
	maxUnits = 64
	maxLife  = 10 * 366 * day
	day      = 24 * time.Hour
)

const nameHint = "a name has up to 63 characters of a-z, 0-9, `.`, `_` and `-`, and begins with a letter or a digit"

// GrantAsked returns the grant of a token that is asked for. The error is an Input fault for a scope or a time that is
// none; the rest is checked by who makes the token.
func GrantAsked(r api.TokenRequest, now time.Time) (Grant, error) {
	g := Grant{Name: r.Name, Limits: Limits{r.Rate, r.Runs}, Teams: r.Teams, Units: r.Units}
	var err error
	if len(r.Scopes) > 0 {
		if g.Scopes, err = ParseScopes(r.Scopes); err != nil {
			return g, err
		}
	}
	g.Expires, err = ParseExpiry(r.Expires, now)
	return g, err
}

// Shown is the grant as clients see it.
func (g Grant) Shown() api.TokenGrant {
	return api.TokenGrant{
		Name: g.Name, Scopes: textsOf(g.Scopes), Teams: g.Teams, Units: g.Units, Rate: g.Limits.Rate,
		Runs: g.Limits.Runs, ExpiresAt: api.TimeOrNil(g.Expires),
	}
}

// Shown is what clients see of a token.
func (t Token) Shown(now time.Time) api.Token {
	return api.Token{
		TokenGrant: t.Grant().Shown(), CreatedAt: t.Created, LastUsedAt: api.TimeOrNil(t.Used),
		GraceUntil: api.TimeOrNil(t.grace(now)),
	}
}

// check returns an Input fault for what no token can be.
func (g Grant) check(now time.Time) error {
	switch {
	case !api.IsTokenName(g.Name):
		return fault.New(fault.Input, "%s is not a valid token name", fault.Quote(g.Name)).
			WithHint(nameHint)
	case len(g.Scopes) == 0:
		return fault.New(fault.Input, "a token without a scope would allow nothing").
			WithHint("add --scope: the scopes are %s", namesOfAll())
	case g.OfWorker():
		return fault.New(fault.Input, "no token has the scope %s", Work).WithHint(workerHint)
	case len(g.Teams) > maxTeams:
		return fault.New(fault.Input, "a token can't be one of more than %d teams", maxTeams)
	case len(g.Units) > maxUnits:
		return fault.New(fault.Input, "a token can't be limited to more than %d units", maxUnits)
	case !g.Expires.IsZero() && !g.Expires.After(now):
		return fault.New(fault.Input, "the token would have expired already").WithHint("name a later time")
	case g.Expires.After(now.Add(maxLife)):
		return fault.New(fault.Input, "a token can't expire in more than ten years").
			WithHint("leave the time out for one that doesn't")
	}
	err := g.Limits.check()
	for _, team := range g.Teams {
		err = cmp.Or(err, api.CheckTeam(team))
	}
	for _, unit := range g.Units {
		err = cmp.Or(err, api.CheckUnitName(unit))
	}
	return err
}

var daysRule = lazyregexp.New(`^[0-9]{1,4}d$`)

// ParseExpiry reads when a token expires: after a duration, of days ("90d") or of less ("12h"), or at a time, which is
// a date ("2027-01-31": when that day begins in UTC) or one of RFC 3339. "" is never, the zero time.
func ParseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if daysRule().MatchString(text) {
		days := 0
		for _, digit := range strings.TrimSuffix(text, "d") {
			days = 10*days + int(digit-'0')
		}
		return now.Add(time.Duration(days) * day).UTC().Truncate(time.Second), nil
	}
	if d, err := quantity.ParseDuration(text, 0, maxLife); err == nil {
		return now.Add(d).UTC().Truncate(time.Second), nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fault.New(fault.Input, "%s is not a time at which a token can expire", fault.Quote(text)).
		WithHint("write 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z")
}

// DefaultGrace is how long a token is good after it was rotated, where nobody says it.
const DefaultGrace = time.Hour

// ParseGrace reads how long a token is good after it was rotated: a duration such as "1h"; "0" is not at all, "" is
// DefaultGrace.
func ParseGrace(text string) (time.Duration, error) {
	switch text {
	case "":
		return DefaultGrace, nil
	case "0":
		return 0, nil
	}
	grace, err := quantity.ParseDuration(text, 0, maxGrace)
	if err != nil {
		return 0, fault.Wrap(fault.Input, err, "%s is not a grace", fault.Quote(text)).
			WithHint("write a duration of up to 720h such as 1h, or 0 for none")
	}
	return grace, nil
}

// manages reports whether the holder of a grant may know of a token with another one, and revoke it: an administrator
// of teams those that are of no other team, and of no worker.
func (g Grant) manages(of Grant) bool {
	return g.OfServer() || !of.OfServer() && !of.OfWorker() && !lacks(g.teams(), of.teams())
}

// lacks reports whether something of the second list isn't in the first.
func lacks(has, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(has, s) })
}

// given is a grant that the holder of another one gives: what isn't said is as the giver has it.
func (g Grant) given(to Grant) Grant {
	if len(to.Teams) == 0 && !g.OfServer() {
		to.Teams = g.teams()[:1]
	}
	if len(to.Units) == 0 {
		to.Units = g.Units
	}
	to.Limits.Rate, to.Limits.Runs = cmp.Or(to.Limits.Rate, g.Limits.Rate), cmp.Or(to.Limits.Runs, g.Limits.Runs)
	if to.Expires.IsZero() {
		to.Expires = g.Expires
	}
	return to
}

// gives returns a Forbidden fault if the holder of a grant would give more than it has.
func (g Grant) gives(to Grant) error {
	more, what := func(most, asked int) bool { return most > 0 && (asked == 0 || asked > most) }, ""
	switch {
	case g.Allows(Admin) != nil:
		return g.Allows(Admin)
	case !g.OfServer() && (to.OfServer() || lacks(g.teams(), to.teams())):
		what = "a team that isn't yours"
	case !g.OfServer() && slices.Contains(to.Scopes, Metrics):
		what = "the scope metrics, which is the whole server's"
	case len(g.Units) > 0 && (len(to.Units) == 0 || lacks(g.Units, to.Units)):
		what = "units that you may not use"
	case more(g.Limits.Rate, to.Limits.Rate), more(g.Limits.Runs, to.Limits.Runs):
		what = "a limit above yours"
	case !g.Expires.IsZero() && (to.Expires.IsZero() || to.Expires.After(g.Expires)):
		what = "a time after yours has expired"
	default:
		return nil
	}
	return fault.New(fault.Forbidden, "you can't give a token %s", what).
		WithHint("ask the operator of the server, or of the team, for such a token")
}
