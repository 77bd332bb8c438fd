package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/access"
)

// Owned selects by who owns. Its zero value selects everything.
type Owned struct {
	Teams []string // any of them; empty: all
	By    string   // the name of the token with which it was made; "": any
}

// OwnedFor selects what the client of ctx may know of.
func OwnedFor(ctx context.Context) Owned { return OwnedIn(access.ReachOf(ctx)) }

// OwnedIn selects what is within a reach.
func OwnedIn(reach access.Reach) Owned {
	switch {
	case reach.All:
		return Owned{}
	case len(reach.Teams) == 0:
		return Owned{Teams: []string{nobody}}
	}
	return Owned{Teams: reach.Teams, By: reach.By}
}

// nobody is the name of no team.
const nobody = "-"

// leads reports whether an index of a team or of a token leads to the rows. Those of the default team are most of them,
// and have none.
func (o Owned) leads() bool {
	return o.By != "" || len(o.Teams) > 0 && !slices.Contains(o.Teams, access.DefaultTeam)
}

// narrow adds what is asked of the rows of a table. may reports whether the index of a team or of a token may lead to
// them: what these leave out, so that they cost nothing without teams, is asked for then, as SQLite has to see.
func (o Owned) narrow(c *condition, table string, may bool) {
	c.is(table+".team", o.Teams...)
	if o.By != "" {
		c.is(table+".made_by", o.By)
	}
	switch {
	case !may || !o.leads():
	case o.By != "":
		c.add(table + ".made_by <> ''")
	default:
		c.add(table + ".team <> '" + access.DefaultTeam + "'")
	}
}

// and is what is asked of the rows of a table as a part of a statement.
func (o Owned) and(table string) statement {
	var c condition
	o.narrow(&c, table, false)
	if len(c.terms) == 0 {
		return statement{}
	}
	return statement{" AND " + strings.Join(c.terms, " AND "), c.args}
}

func teamOf(team string) string { return cmp.Or(team, access.DefaultTeam) }
