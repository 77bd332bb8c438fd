package handoff

import (
	"sync"

	"github.com/agent-on-demand/aod/fault"
)

// Tree counts the calls below every run of one tree; it is shared by the handlers of the
// tree's runs.
type Tree struct {
	mu    sync.Mutex
	calls map[string]int // below the run
}

// NewTree returns a tree without calls.
func NewTree() *Tree { return &Tree{calls: map[string]int{}} }

// Spend counts a call below each run of the path, or refuses (rule "calls", kind Busy)
// and counts nothing. A run's own budget bounds what is below it, the operator's limit
// what is below the root.
func (t *Tree) Spend(path []Step, limits Limits) error {
	limits = limits.withDefaults()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, step := range path {
		if err := affordable(step, t.calls[step.Run], limits.Calls); err != nil {
			return err
		}
	}
	for _, step := range path {
		t.calls[step.Run]++
	}
	return nil
}

func affordable(step Step, spent, limit int) error {
	if budget := step.Budgets.Calls; budget > 0 && spent >= budget {
		return refuse(RuleCalls, fault.New(fault.Busy, "the %d calls that %s may make, with all that it calls, are spent", budget, quote(step.Unit)).
			WithHint("raise budgets.calls in the agent.yaml of %s, or call less", quote(step.Unit)))
	}
	if spent >= limit {
		return refuse(RuleCalls, fault.New(fault.Busy, "the %d calls that a tree of runs may make are spent", limit).
			WithHint("call less; whoever runs this server can raise its limit of calls"))
	}
	return nil
}

// refund takes back what Spend counted for a call that never came to be.
func (t *Tree) refund(path []Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, step := range path {
		t.calls[step.Run]--
	}
}

// Restore sets how many calls were made below a run, by an earlier process.
func (t *Tree) Restore(run string, calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[run] = calls
}
