package units

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// Flow returns the text of a flow with its findings, and its graph. Of the newest state that can't be run there is no
// graph; a version, "" for that state, is one that can. A unit that isn't a flow is a Conflict fault.
func (c *Catalogue) Flow(ctx context.Context, name, version string) (api.UnitFlow, *flow.Flow, error) {
	if version != "" {
		u, err := c.names.version(ctx, name, version)
		if err != nil {
			return api.UnitFlow{}, nil, err
		}
		return c.flowOf(ctx, u)
	}
	u, err := c.names.find(ctx, name)
	if fault.Is(err, fault.Capsule) || err == nil && u.Problem != nil {
		shown, err := c.brokenFlow(ctx, name)
		return shown, nil, err
	}
	if err != nil {
		return api.UnitFlow{}, nil, err
	}
	return c.flowOf(ctx, u)
}

// flowOf shows a flow that can be run, held against the units that are there.
func (c *Catalogue) flowOf(ctx context.Context, u *unit.Unit) (api.UnitFlow, *flow.Flow, error) {
	of, err := flowIn(u)
	if err != nil {
		return api.UnitFlow{}, nil, err
	}
	text, err := capsule.FlowText(of.Dir)
	if err != nil {
		return api.UnitFlow{}, nil, fault.Wrap(fault.NotFound, err, "the files of this version are gone").
			WithHint("`aod units versions %s` lists those that are there", u.Name)
	}
	return c.checked(ctx, u, of, text)
}

// checked shows the text of a flow with what is found, and its graph.
func (c *Catalogue) checked(
	ctx context.Context, u *unit.Unit, of *capsule.Capsule, text []byte,
) (shown api.UnitFlow, _ *flow.Flow, err error) {
	shown = api.UnitFlow{
		Unit: u.Name, Version: u.Version, Text: string(text),
		Findings: append(append([]fault.Finding{}, of.Warnings...), of.Flow.Check(c.termsOf(ctx, u))...),
	}
	shown.Graph, err = json.Marshal(of.Flow)
	return shown, of.Flow, err
}

// termsOf are what a flow is held against. Each unit that it names, or these name, is looked up once.
func (c *Catalogue) termsOf(ctx context.Context, u *unit.Unit) flow.Terms {
	known := map[string]*unit.Unit{u.Name: u}
	look := func(name string) *unit.Unit {
		if _, looked := known[name]; !looked {
			known[name], _ = c.names.find(asTeam(ctx, u.Team), name) // nil: it isn't there
		}
		return known[name]
	}
	return flow.Terms{
		Contract: u.Contract, Name: u.Name, Recursion: u.Policy.Recursion,
		Timeout: u.Policy.Limits.Timeout, Calls: u.Policy.Budgets.Calls,
		Units: func(name string) (*contract.Contract, bool) {
			if of := look(name); of != nil {
				return of.Contract, true
			}
			return nil, false
		},
		Callees: func(name string) []string {
			if of := look(name); of != nil {
				return of.Policy.Grants
			}
			return nil
		},
	}
}

// brokenFlow shows the newest state of a flow, with what is wrong with it.
func (c *Catalogue) brokenFlow(ctx context.Context, name string) (api.UnitFlow, error) {
	broken, err := c.broken(ctx, name)
	if err != nil {
		return api.UnitFlow{}, err
	}
	text, err := capsule.FlowText(broken.Origin)
	if err != nil {
		return api.UnitFlow{}, noFlow(name)
	}
	return faulty(name, text, broken.Problem), nil
}

// broken looks for a unit whose newest state can't be run.
func (c *Catalogue) broken(ctx context.Context, name string) (registry.Listed, error) {
	listed, err := c.registry.List(ctx)
	if err != nil {
		return registry.Listed{}, err
	}
	i := slices.IndexFunc(listed, func(l registry.Listed) bool { return l.Name == name && l.Problem != nil })
	if i < 0 {
		return registry.Listed{}, fault.New(fault.Conflict, "the unit %q has just changed", name).WithHint("ask again")
	}
	return listed[i], nil
}

// faulty shows the text of a flow with what keeps it from being one.
func faulty(name string, text []byte, problem *fault.Error) api.UnitFlow {
	shown := api.UnitFlow{Unit: name, Text: string(text), Findings: problem.Findings}
	if len(shown.Findings) == 0 {
		shown.Findings = []fault.Finding{{Message: problem.Msg, Hint: problem.Hint}}
	}
	return shown
}

// flowIn is what has been read of a flow, or a Conflict fault of another unit.
func flowIn(u *unit.Unit) (*capsule.Capsule, error) {
	of, ok := u.Definition.(*capsule.Capsule)
	if !ok || of.Flow == nil {
		return nil, noFlow(u.Name)
	}
	return of, nil
}

func noFlow(name string) error {
	return fault.New(fault.Conflict, "the unit %q isn't a flow", name).WithHint("only flows have a graph")
}
