package handoff

import (
	"errors"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
)

// tokens is a budget that the broker doesn't know: a unit says its own, and a call costs
// some.
type tokens struct{ perCall int64 }

func (tokens) Name() string { return "tokens" }

func (b tokens) PerCall() int64 { return b.perCall }

func (tokens) Check(step Step, _ Limits, total int64) error {
	if budget := step.Budgets.Tokens; budget > 0 && total > budget {
		return refuse("tokens", fault.New(fault.Busy, "%d tokens are too many for %s", total, step.Unit))
	}
	return nil
}

// spending is a broker whose caller's tree has a second budget.
func spending(t *testing.T, perCall int64, root capsule.Budgets) (*Broker, *fakeRuns) {
	t.Helper()
	return withoutDirectories(t, func(c *Caller, _ *Limits) {
		c.Tree, c.Path[0].Budgets = NewTree(tokens{perCall}), root
	})
}

func wantSpent(t *testing.T, b *Broker, calls, tokens int64) {
	t.Helper()
	for _, step := range b.caller.Path {
		if c, k := b.caller.Tree.of(BudgetCalls, step.Run), b.caller.Tree.of("tokens", step.Run); c != calls || k != tokens {
			t.Errorf("below %s: %d calls, %d tokens", step.Unit, c, k)
		}
	}
}

func TestABrokerSpendsABudgetThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	b, runs := spending(t, 40, capsule.Budgets{Tokens: 100})
	for range 2 {
		_, err := b.Start(t.Context(), Request{Target: "callee"})
		must(t, err)
	}
	wantSpent(t, b, 2, 80)
	_, err := b.Start(t.Context(), Request{Target: "callee"})
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Rule != "tokens" || err.Error() != "120 tokens are too many for root" {
		t.Errorf("%v", err)
	}
	wantSpent(t, b, 2, 80) // the budget of calls counted nothing either
	if runs.started() != 2 {
		t.Errorf("%d started", runs.started())
	}
}

func TestACallThatIsNotMadeIsRefundedInEveryBudget(t *testing.T) {
	t.Parallel()
	b, runs := spending(t, 40, capsule.Budgets{})
	runs.refuse = fault.New(fault.Busy, "the queue is full")
	if _, err := b.Start(t.Context(), Request{Target: "callee"}); !errors.Is(err, runs.refuse) {
		t.Errorf("%v", err)
	}
	wantSpent(t, b, 0, 0)
}

func TestABudgetOfWhichACallCostsNothingEndsCallsWhenItIsOverspent(t *testing.T) {
	t.Parallel()
	b, _ := spending(t, 0, capsule.Budgets{Tokens: 100})
	b.caller.Tree.Restore("tokens", b.caller.Path[0].Run, 100)
	_, err := b.Start(t.Context(), Request{Target: "callee"})
	must(t, err)
	b.caller.Tree.Restore("tokens", b.caller.Path[0].Run, 101)
	if _, err := b.Start(t.Context(), Request{Target: "callee"}); !fault.Is(err, fault.Busy) {
		t.Errorf("%v", err)
	}
}

func TestEachBudgetIsRestoredByItself(t *testing.T) {
	t.Parallel()
	b, _ := spending(t, 40, capsule.Budgets{Calls: 3, Tokens: 1000})
	root := b.caller.Path[0].Run
	b.caller.Tree.Restore("tokens", root, 500)
	b.caller.Tree.Restore("nothing of ours", root, 1<<40)
	_, err := b.Start(t.Context(), Request{Target: "callee"})
	must(t, err)
	if got := b.caller.Tree.of("tokens", root); got != 540 {
		t.Errorf("%d tokens", got)
	}
	b.caller.Tree.Restore(BudgetCalls, root, 3)
	var refusal *Refusal
	if _, err := b.Start(t.Context(), Request{Target: "callee"}); !errors.As(err, &refusal) || refusal.Rule != RuleCalls {
		t.Errorf("%v", err)
	}
}

func TestManyCallsAtOnceKeepEveryBudget(t *testing.T) {
	t.Parallel()
	tree := NewTree(tokens{10})
	path := []Step{{Run: "a", Budgets: capsule.Budgets{Tokens: 250}}}
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() { _ = tree.Spend(path, Limits{Calls: 40}) }) // most are refused
	}
	calls.Wait()
	if c, k := tree.of(BudgetCalls, "a"), tree.of("tokens", "a"); c != 25 || k != 250 {
		t.Errorf("%d calls, %d tokens", c, k)
	}
}

func TestTheOperatorsLimitHoldsWhereARunSaysNone(t *testing.T) {
	t.Parallel()
	for limit, most := range map[int]int64{0: 200, 7: 7} {
		if err := (calls{}).Check(Step{}, Limits{Calls: limit}, most); err != nil {
			t.Errorf("%d: %v", limit, err)
		}
		if err := (calls{}).Check(Step{}, Limits{Calls: limit}, most+1); !fault.Is(err, fault.Busy) {
			t.Errorf("%d: %v", limit, err)
		}
	}
}
