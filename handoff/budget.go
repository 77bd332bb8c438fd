package handoff

import "github.com/agent-on-demand/aod/api/fault"

// Budget is one thing that the runs of a tree spend, such as calls: it says what is too
// much of it. A Tree counts what was spent; a Budget has no state.
type Budget interface {
	// Name is the budget's own within a tree, as `budgets` of agent.yaml calls it.
	Name() string
	// PerCall is how much of it a call spends, 0 or more. With 0 a call is refused only
	// where more was spent before than is allowed.
	PerCall() int64
	// Check returns a *Refusal where total is too much: for what a run on the path may
	// spend, with all that it calls, or for what the operator allows below one run.
	Check(step Step, limits Limits, total int64) error
}

// BudgetCalls is the name of the budget of calls, which every tree has.
const BudgetCalls = "calls"

// calls is the budget of calls. A run's own budget is budgets.calls of its agent.yaml.
type calls struct{}

// Name implements Budget.
func (calls) Name() string { return BudgetCalls }

// PerCall implements Budget.
func (calls) PerCall() int64 { return 1 }

// Check implements Budget. Its refusals have the rule RuleCalls and the kind Busy.
func (calls) Check(step Step, limits Limits, total int64) error {
	if budget := step.Budgets.Calls; budget > 0 && total > int64(budget) {
		return refuse(RuleCalls,
			fault.New(fault.Busy, "the %d calls that %s may make, with all that it calls, are spent", budget,
				quote(step.Unit)).
				WithHint("raise budgets.calls in the agent.yaml of %s, or call less", quote(step.Unit)))
	}
	most, what := limits.withDefaults().Calls, "a tree of runs"
	if step.Flow {
		most, what = limits.withDefaults().FlowCalls, "a flow"
	}
	if total > int64(most) {
		return refuse(RuleCalls, fault.New(fault.Busy, "the %d calls that %s may make are spent", most, what).
			WithHint("call less; whoever runs this server can raise its limit of calls"))
	}
	return nil
}
