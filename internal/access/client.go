package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// DefaultTeam owns what is made where nobody speaks of teams.
const DefaultTeam = api.DefaultTeam

// Owner is to whom something belongs: to a team, and in it to the holder of a token.
type Owner struct {
	Team string
	By   string // the name of the token with which it was made; "": the server's own
}

// Reach is what somebody may know of, by whom it belongs to. The zero Reach is nothing.
type Reach struct {
	All   bool
	Teams []string // to which it has to belong, unless All
	By    string   // with whose token it has to be made, unless All; "": with any
	Units []string // that may be used, also with All; none: each
}

// Sees reports whether something that belongs to an owner is within reach.
func (r Reach) Sees(o Owner) bool {
	return r.All || slices.Contains(r.Teams, o.Team) && (r.By == "" || r.By == o.By)
}

// Key tells reaches apart.
func (r Reach) Key() string { return fmt.Sprintf("%t %q %q %q", r.All, r.Teams, r.By, r.Units) }

// client is who asks, in the context of a request.
type client struct {
	grant   Grant
	trusted bool // the server itself: nothing is refused
	owner   Owner
	reach   Reach
}

// clientKey is its key.
type clientKey struct{}

func with(ctx context.Context, c client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// WithGrant returns a context of a request whose client has a grant: what is made with it belongs to the grant's
// first team and its name, and ReachOf goes by its teams and scopes. The empty grant is that of a client without a
// token, where none is needed.
func WithGrant(ctx context.Context, g Grant) context.Context {
	return with(ctx, client{grant: g, owner: Owner{g.teams()[0], g.Name}, reach: g.reach()})
}

// WithServer returns a context of what the server itself does, for nobody: everything is within reach.
func WithServer(ctx context.Context) context.Context {
	return with(ctx, client{trusted: true, owner: Owner{Team: DefaultTeam}, reach: Reach{All: true}})
}

// WithOwner returns a context of what the server itself does for somebody, such as a run that a schedule starts: it
// belongs to the owner, and what belongs to the owner's team is within reach.
func WithOwner(ctx context.Context, o Owner) context.Context {
	return with(ctx, client{trusted: true, owner: o, reach: Reach{Teams: []string{o.Team}}})
}

// ForOwner is WithOwner for what the client of ctx asks for: a unit that it may not use itself isn't used for others
// either.
func ForOwner(ctx context.Context, o Owner) context.Context {
	reach := Reach{Teams: []string{o.Team}, Units: ReachOf(ctx).Units}
	return with(ctx, client{trusted: true, owner: o, reach: reach})
}

// clientOf is that of a context. The zero client, of a context that has none, may nothing and sees nothing: whoever
// forgets to say for whom something is done has it refused.
func clientOf(ctx context.Context) client {
	c, _ := ctx.Value(clientKey{}).(client)
	return c
}

// OwnerOf returns to whom belongs what is made in a context.
func OwnerOf(ctx context.Context) Owner { return clientOf(ctx).owner }

// GrantOf returns what a context's client may do: where it is the server itself, or needs no token, everything.
func GrantOf(ctx context.Context) Grant {
	c := clientOf(ctx)
	if c.trusted {
		return Grant{Scopes: []Scope{Admin}, Teams: c.reach.Teams}
	}
	return c.grant
}

// ClientOf returns the name of the token of a context's client, or "".
func ClientOf(ctx context.Context) string { return clientOf(ctx).owner.By }

// May reports whether a context's client has a scope.
func May(ctx context.Context, scope Scope) bool {
	c := clientOf(ctx)
	return c.trusted || c.grant.Allows(scope) == nil
}

// MostRuns returns how many runs that a context's client asked for may go on at once; 0: there is no bound.
func MostRuns(ctx context.Context) int { return clientOf(ctx).grant.Limits.Runs }

// IsAnonymous reports whether the context is that of a client who needed no token, and has none, or that of a worker.
func IsAnonymous(ctx context.Context) bool {
	c := clientOf(ctx)
	return !c.trusted && (len(c.grant.Scopes) == 0 || c.grant.OfWorker())
}

// ReachOf returns what a context's client may know of.
func ReachOf(ctx context.Context) Reach { return clientOf(ctx).reach }

// Sees reports whether a context's client may know of what belongs to an owner.
func Sees(ctx context.Context, o Owner) bool {
	seen := ReachOf(ctx).Sees(o)
	if !seen {
		Hide(ctx)
	}
	return seen
}

// UnitsOf returns the teams whose units a context's client may use, also one that sees only the runs that it made
// itself; all: every team's.
func UnitsOf(ctx context.Context) (teams []string, all bool) {
	c := clientOf(ctx)
	switch {
	case c.reach.All:
		return nil, true
	case c.trusted:
		return c.reach.Teams, false
	case len(c.grant.Scopes) == 0, c.grant.OfWorker():
		return nil, false
	}
	return c.grant.teams(), false
}

// CheckUnit returns a Forbidden fault for a unit that isn't one of those to which a context's client is limited. What
// the unit itself calls doesn't count.
func CheckUnit(ctx context.Context, name string) error {
	allowed := ReachOf(ctx).Units
	if len(allowed) == 0 || slices.ContainsFunc(allowed, func(unit string) bool {
		return slices.Contains(NamesOf(ctx, unit), name)
	}) {
		return nil
	}
	return fault.New(fault.Forbidden, "%s may not use the unit %s", clientOf(ctx).grant.who(), fault.Quote(name)).
		WithHint("it is limited to %s", strings.Join(allowed, ", "))
}

// ViewOf returns a text that tells apart of which units clients may know, and what has another context be one of the
// same client: by it the server looks for those who listen after their request.
func ViewOf(ctx context.Context) (key string, in func(context.Context) context.Context) {
	c := clientOf(ctx)
	teams, all := UnitsOf(ctx)
	key = fmt.Sprintf("%t %q %q", all, teams, c.reach.Units)
	return key, func(ctx context.Context) context.Context { return with(ctx, c) }
}

// NamesOf returns the names that a context's client may mean by one: the first counts that there is. Those of a team
// begin with its name, see api.InTeam.
func NamesOf(ctx context.Context, name string) []string {
	names := []string{name}
	teams, _ := UnitsOf(ctx)
	for _, team := range teams {
		if full := api.InTeam(team, name); !slices.Contains(names, full) {
			names = append(names, full)
		}
	}
	return names
}

// Has reports whether a context's client has just this scope, or is the server itself.
func Has(ctx context.Context, scope Scope) bool {
	c := clientOf(ctx)
	return c.trusted || slices.Contains(c.grant.Scopes, scope)
}
