package access

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// Teams returns the teams that there are beside DefaultTeam; nil: there are none.
type Teams func() []string

// Any reports whether there are any.
func (t Teams) Any() bool { return t != nil && len(t()) > 0 }

// Has reports whether there is one of a name.
func (t Teams) Has(name string) bool { return t != nil && slices.Contains(t(), name) }

// ToPut returns the name under which the client of a context makes a unit or a schedule, and the team to which that
// belongs: the one with whose name it begins, if that is one of the client's, else the client's first.
func (t Teams) ToPut(ctx context.Context, name string) (full, team string) {
	team = OwnerOf(ctx).Team
	teams, all := UnitsOf(ctx)
	prefix, _, dotted := strings.Cut(name, ".")
	if dotted && prefix != team && (all && t.Has(prefix) || slices.Contains(teams, prefix)) {
		team = prefix
	}
	return api.InTeam(team, name), team
}

// CheckName returns a Forbidden fault for the name of something of a team that would be one of another team's.
func (t Teams) CheckName(team, name string) error {
	prefix, _, dotted := strings.Cut(name, ".")
	if team != DefaultTeam || !dotted || !t.Has(prefix) {
		return nil
	}
	return fault.New(fault.Forbidden, "the names that begin with %q are those of the team %s", prefix+".", prefix).
		WithHint("use another name")
}
