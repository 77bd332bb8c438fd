package handoff

import "sync"

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
