package handoff

import (
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
)

func TestACallCountsBelowEveryRunOfThePath(t *testing.T) {
	t.Parallel()
	tree := NewTree()
	path := []Step{{Run: "a", Unit: "a", Budgets: capsule.Budgets{Calls: 3}}, {Run: "b", Unit: "b", Budgets: capsule.Budgets{Calls: 2}}}
	must(t, tree.Spend(path, Limits{}))
	must(t, tree.Spend(path, Limits{}))
	if err := tree.Spend(path, Limits{}); !fault.Is(err, fault.Busy) {
		t.Errorf("b's budget: %v", err)
	}
	must(t, tree.Spend(path[:1], Limits{})) // the refused one counted nothing
	if err := tree.Spend(path[:1], Limits{}); !fault.Is(err, fault.Busy) {
		t.Errorf("a's budget: %v", err)
	}
}

func TestManyCallsAtOnceKeepTheLimit(t *testing.T) {
	t.Parallel()
	tree := NewTree()
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 100 {
		wg.Go(func() {
			if tree.Spend([]Step{{Run: "a"}}, Limits{Calls: 40}) == nil {
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

func TestARunWithoutAPathHasOneOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.caller.Path, w.caller.Tree, w.limits.Calls = nil, nil, 1
	w.renew()
	w.call(200, `{}`)
	w.call(429, `{}`)
}
