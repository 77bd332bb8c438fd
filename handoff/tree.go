package handoff

import (
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
)

// Tree counts what is spent below every run of one tree, of each of its budgets. The
// brokers of the tree's runs share it. All methods may be called at the same time.
type Tree struct {
	budgets []Budget

	mu    sync.Mutex
	spent map[account]int64
}

// account is what one budget counts below one run.
type account struct{ budget, run string }

// NewTree returns a tree that has spent nothing. It has the budget of calls, and others.
func NewTree(others ...Budget) *Tree {
	return &Tree{budgets: append([]Budget{calls{}}, others...), spent: map[account]int64{}}
}

// Spend counts a call below each run of the path, in every budget. Where one budget has
// too little left, it counts nothing and returns the budget's refusal: for calls a
// *Refusal (RuleCalls) of the kind Busy.
func (t *Tree) Spend(path []Step, limits Limits) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, budget := range t.budgets {
		for _, step := range path {
			total := t.spent[account{budget.Name(), step.Run}] + budget.PerCall()
			if err := budget.Check(step, limits, total); err != nil {
				return err
			}
		}
	}
	t.count(path, 1)
	return nil
}

// refund takes back what Spend counted for a call that never came to be.
func (t *Tree) refund(path []Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(path, -1)
}

// count adds a number of calls below each run of the path. The caller holds the lock.
func (t *Tree) count(path []Step, times int64) {
	for _, budget := range t.budgets {
		for _, step := range path {
			t.spent[account{budget.Name(), step.Run}] += times * budget.PerCall()
		}
	}
}

// Restore sets how much of a budget was spent below a run, by an earlier process. What the
// tree has no budget for is not looked at.
func (t *Tree) Restore(budget, run string, amount int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spent[account{budget, run}] = amount
}

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
