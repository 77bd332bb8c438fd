package flow

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// kindInvalid is the kind of the error of a flow that can't end well.
const kindInvalid = "invalid_flow"

// check holds the flow against the contracts of its units before anything starts, and returns
// the result of a run that can't end well, or nil. A unit that isn't there may not be needed.
func (x *execution) check(ctx context.Context) (*run.Result, error) {
	graph, err := graphOf(x.Unit)
	if err != nil {
		return nil, err
	}
	calls, contracts := x.Calls(), map[string]*contract.Contract{}
	for _, name := range x.Grants { // those that its nodes name
		if u, err := calls.Unit(ctx, name); err == nil {
			contracts[name] = u.Contract
		}
	}
	found := fault.Errors(graph.Check(flow.Terms{
		Units:    func(name string) (*contract.Contract, bool) { return contracts[name], true },
		Contract: x.Unit.Contract, Name: x.Unit.Name, Recursion: x.Unit.Policy.Recursion,
	}))
	if len(found) == 0 {
		return nil, nil
	}
	return &run.Result{State: api.Failed, Outcome: api.StepFailed, Failure: &api.RunError{
		Category: api.CategoryPermanent, Kind: kindInvalid,
		Message: "the flow can't end well, so nothing was started: " + found[0].String(),
		Hint:    "fix it, and look with aod validate", Findings: found,
	}}, nil
}
