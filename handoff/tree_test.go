package handoff_test

import (
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
)

func TestACallCountsBelowEveryRunOfThePath(t *testing.T) {
	t.Parallel()
	tree := handoff.NewTree()
	path := []handoff.Step{{Run: "a", Unit: "a", Budgets: capsule.Budgets{Calls: 3}}, {Run: "b", Unit: "b", Budgets: capsule.Budgets{Calls: 2}}}
	must(t, tree.Spend(path, handoff.Limits{}))
	must(t, tree.Spend(path, handoff.Limits{}))
	if err := tree.Spend(path, handoff.Limits{}); !fault.Is(err, fault.Busy) {
		t.Errorf("b's budget: %v", err)
	}
	must(t, tree.Spend(path[:1], handoff.Limits{})) // the refused one counted nothing
	if err := tree.Spend(path[:1], handoff.Limits{}); !fault.Is(err, fault.Busy) {
		t.Errorf("a's budget: %v", err)
	}
}

func TestManyCallsAtOnceKeepTheLimit(t *testing.T) {
	t.Parallel()
	tree := handoff.NewTree()
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 100 {
		wg.Go(func() {
			if tree.Spend([]handoff.Step{{Run: "a"}}, handoff.Limits{Calls: 40}) == nil {
				mu.Lock()
				made++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if made != 40 {
		t.Errorf("%d were let through", made)
	}
}
