package units

import (
	"context"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// The units of directories are the operator's, for everybody, or for the teams that he names. An upload belongs to a
// team, whose name begins its own (TEAM.NAME) unless it is that of access.DefaultTeam. Inside of the team the rest of
// the name is enough, where nothing else has it: what a directory holds always comes first.

// Shown reports whether the client of ctx may know of a unit of a name that belongs to a team, "" for the operator's. A
// token that is limited to units knows of no others.
func (r *Rules) Shown(ctx context.Context, name, team string) bool {
	teams, all := access.UnitsOf(ctx)
	shared := r.Of(name).Teams
	switch {
	case access.CheckUnit(ctx, name) != nil:
		return false
	case all:
		return true
	case team != "":
		shared = append([]string{team}, shared...)
	case len(shared) == 0:
		return true
	}
	return slices.ContainsFunc(teams, func(t string) bool { return slices.Contains(shared, t) })
}

// names finds the units that clients mean.
type names struct {
	registry *registry.Registry
	rules    *Rules
	teams    access.Teams
}

// isShown reports whether the client of ctx may know that there is a unit.
func (n names) isShown(ctx context.Context, u *unit.Unit) bool {
	return n.rules.Shown(ctx, u.Name, u.Team)
}

// isShownBroken is isShown for a unit that never had a valid version, or whose upload is damaged, which may be
// anybody's.
func (n names) isShownBroken(ctx context.Context, l registry.Listed) bool {
	if l.Origin == "" {
		return access.ReachOf(ctx).All && access.CheckUnit(ctx, l.Name) == nil
	}
	return n.rules.Shown(ctx, l.Name, "")
}

// list lists what the registry has and the client of ctx may know of.
func (n names) list(ctx context.Context) ([]registry.Listed, error) {
	all, err := n.registry.List(ctx)
	return slices.DeleteFunc(all, func(l registry.Listed) bool {
		return l.Unit != nil && !n.isShown(ctx, l.Unit) || l.Unit == nil && !n.isShownBroken(ctx, l)
	}), err
}

// find returns the unit that the client of ctx means by a name. Of one that the client may not know of it says what it
// says of one that isn't there.
func (n names) find(ctx context.Context, name string) (*unit.Unit, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	for _, full := range access.NamesOf(ctx, name) {
		u, err := n.registry.Get(ctx, full)
		switch {
		case err == nil && !n.isShown(ctx, u):
			access.Hide(ctx)
		case fault.Is(err, fault.NotFound), fault.Is(err, fault.Input):
		case err != nil && !n.rules.Shown(ctx, full, ""):
		default:
			return u, err
		}
	}
	return nil, n.unknown(ctx, name)
}

// unknown is the fault of a name by which the client of ctx knows no unit. Its hint names none that the client may not
// know of.
func (n names) unknown(ctx context.Context, name string) error {
	const otherwise = "put its directory where the server looks for units, or upload it"
	known, err := n.list(ctx)
	if err != nil {
		return err
	}
	shown := make([]string, len(known))
	for i, l := range known {
		shown[i] = l.Name
	}
	return fault.New(fault.NotFound, "there is no unit %s", fault.Quote(name)).
		WithHint("%s", fault.Suggest(name, shown, otherwise))
}

// known returns the name of the unit, or of one that was removed and of which versions are kept, that the client of
// ctx means.
func (n names) known(ctx context.Context, name string) (string, error) {
	full, _, err := n.meant(ctx, name)
	return full, err
}

// FullName returns the name of the unit that the client of ctx means by one, or the name itself where there is none:
// the operator's rules go by it.
func (c *Catalogue) FullName(ctx context.Context, name string) string {
	if len(access.NamesOf(ctx, name)) > 1 {
		if full, err := c.names.known(ctx, name); err == nil {
			return full
		}
	}
	return name
}

// Hides reports whether the client of ctx may not know that there is a unit of a name, or was.
func (c *Catalogue) Hides(ctx context.Context, name string) bool {
	if access.ReachOf(ctx).All {
		return false
	}
	if u, err := c.registry.Get(ctx, name); err == nil {
		return !c.names.isShown(ctx, u)
	}
	kept, _ := c.registry.Versions(ctx, name)
	return len(kept) > 0 && !c.opts.Rules.Shown(ctx, name, kept[0].Team)
}

// HaveTeams reports whether there are teams beside the default one.
func (c *Catalogue) HaveTeams() bool { return c.opts.Teams.Any() }

// version returns a version of the unit that the client of ctx means.
func (n names) version(ctx context.Context, name, version string) (*unit.Unit, error) {
	full, err := n.known(ctx, name)
	if err != nil {
		return nil, err
	}
	return n.registry.Version(ctx, full, version)
}

// owned is known for a client who wants to change the unit.
func (n names) owned(ctx context.Context, name string) (string, error) {
	full, team, err := n.meant(ctx, name)
	if err == nil {
		err = n.manages(ctx, full, team)
	}
	return full, err
}

// meant returns the name of the unit, or of one that was removed and of which versions are kept, that the client of
// ctx means, and the team to which it belongs.
func (n names) meant(ctx context.Context, name string) (full, team string, err error) {
	u, err := n.find(ctx, name)
	switch {
	case err == nil:
		return u.Name, u.Team, nil
	case !fault.Is(err, fault.NotFound):
		return name, "", nil // broken, in a directory: whoever asks for it is told what it is
	}
	for _, full := range access.NamesOf(ctx, name) {
		kept, _ := n.registry.Versions(ctx, full)
		if len(kept) > 0 && n.rules.Shown(ctx, full, kept[0].Team) {
			return full, kept[0].Team, nil
		}
	}
	return "", "", err
}

// manages refuses a client who may only run a unit, and not change it.
func (n names) manages(ctx context.Context, name, team string) error {
	teams, all := access.UnitsOf(ctx)
	if all || slices.Contains(teams, team) || team == "" && slices.Contains(teams, access.DefaultTeam) {
		return nil
	}
	return fault.New(fault.Forbidden, "the unit %s belongs to others, who let your team run it", name).
		WithHint("ask the operator, or upload one of your own")
}

// toPut returns the name under which the client of ctx brings a unit, and the team to which that belongs. The error is
// a Forbidden fault for the name of another team's.
func (n names) toPut(ctx context.Context, name string) (full, team string, err error) {
	full, team = n.teams.ToPut(ctx, name)
	if err := api.CheckUnitName(full); err != nil {
		return "", "", err
	}
	if err := access.CheckUnit(ctx, full); err != nil {
		return "", "", err
	}
	return full, team, n.teams.CheckName(team, full)
}

// CallsOf are the units as those of one see them that it calls: what an upload names are those of its team, and what a
// directory names are the operator's, whoever runs it.
func CallsOf(all run.Units, u *unit.Unit) run.Units {
	if scoped, is := all.(calls); is {
		all = scoped.Units
	}
	return calls{all, u.Team}
}

// calls are the units that those of a team call; "": the operator's.
type calls struct {
	run.Units
	team string
}

// Get implements run.Units.
func (c calls) Get(ctx context.Context, name string) (*unit.Unit, error) {
	return c.Units.Get(asTeam(ctx, c.team), name)
}

// asTeam returns a context of what is done for the units of a team; "": for the operator's.
func asTeam(ctx context.Context, team string) context.Context {
	if team == "" {
		return access.WithServer(ctx)
	}
	return access.WithOwner(ctx, access.Owner{Team: team})
}
