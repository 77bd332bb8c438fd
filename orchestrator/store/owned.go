package store

import (
	"cmp"
	"context"
	"slices"

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

// all reports whether everything is selected.
func (o Owned) all() bool { return len(o.Teams) == 0 && o.By == "" }

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

// narrowed is a statement of the rows of a table, which ends in what it asks of them, for those that are owned so.
func (o Owned) narrowed(table string, of statement) statement {
	var c condition
	o.narrow(&c, table, false)
	for _, term := range c.terms {
		of.text += " AND " + term
	}
	return of.then("", c.args...)
}

func teamOf(team string) string { return cmp.Or(team, access.DefaultTeam) }
