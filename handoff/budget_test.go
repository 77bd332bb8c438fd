package handoff_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/handofftest"
)

// tokens is a budget that the broker doesn't know: a unit says its own, and a call costs
// some.
type tokens struct{ perCall int64 }

func (tokens) Name() string { return "tokens" }

func (b tokens) PerCall() int64 { return b.perCall }

func (tokens) Check(step handoff.Step, _ handoff.Limits, total int64) error {
	if budget := step.Budgets.Tokens; budget > 0 && total > budget {
		return &handoff.Refusal{Rule: "tokens", Fault: fault.New(fault.Busy, "%d tokens are too many for %s", total, step.Unit)}
	}
	return nil
}

// spending is a broker whose caller's tree has a second budget.
func spending(t *testing.T, perCall int64, root capsule.Budgets) (*handoff.Broker, *handofftest.Runs) {
	t.Helper()
	return withoutDirectories(t, func(c *handoff.Caller, _ *handoff.Limits) {
		c.Tree, c.Path[0].Budgets = handoff.NewTree(tokens{perCall}), root
	})
}

func wantSpent(t *testing.T, b *handoff.Broker, calls, tokens int64) {
	t.Helper()
	for _, step := range b.Caller().Path {
		if c, k := b.Caller().Tree.Of(handoff.BudgetCalls, step.Run), b.Caller().Tree.Of("tokens", step.Run); c != calls || k != tokens {
			t.Errorf("below %s: %d calls, %d tokens", step.Unit, c, k)
		}
	}
}

func TestABrokerSpendsABudgetThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	b, runs := spending(t, 40, capsule.Budgets{Tokens: 100})
	for range 2 {
		_, err := b.Start(t.Context(), handoff.Request{Target: "callee"})
		must(t, err)
	}
	wantSpent(t, b, 2, 80)
	_, err := b.Start(t.Context(), handoff.Request{Target: "callee"})
	var refusal *handoff.Refusal
	if !errors.As(err, &refusal) || refusal.Rule != "tokens" || err.Error() != "120 tokens are too many for root" {
		t.Errorf("%v", err)
	}
	wantSpent(t, b, 2, 80) // the budget of calls counted nothing either
	if runs.Started() != 2 {
		t.Errorf("%d started", runs.Started())
	}
}

func TestACallThatIsNotMadeIsRefundedInEveryBudget(t *testing.T) {
	t.Parallel()
	b, runs := spending(t, 40, capsule.Budgets{})
	runs.Refuse = fault.New(fault.Busy, "the queue is full")
	if _, err := b.Start(t.Context(), handoff.Request{Target: "callee"}); !errors.Is(err, runs.Refuse) {
		t.Errorf("%v", err)
	}
	wantSpent(t, b, 0, 0)
}

func TestABudgetOfWhichACallCostsNothingEndsCallsWhenItIsOverspent(t *testing.T) {
	t.Parallel()
	b, _ := spending(t, 0, capsule.Budgets{Tokens: 100})
	b.Caller().Tree.Restore("tokens", b.Caller().Path[0].Run, 100)
	_, err := b.Start(t.Context(), handoff.Request{Target: "callee"})
	must(t, err)
	b.Caller().Tree.Restore("tokens", b.Caller().Path[0].Run, 101)
	if _, err := b.Start(t.Context(), handoff.Request{Target: "callee"}); !fault.Is(err, fault.Busy) {
		t.Errorf("%v", err)
	}
}

func TestEachBudgetIsRestoredByItself(t *testing.T) {
	t.Parallel()
	b, _ := spending(t, 40, capsule.Budgets{Calls: 3, Tokens: 1000})
	root := b.Caller().Path[0].Run
	b.Caller().Tree.Restore("tokens", root, 500)
	b.Caller().Tree.Restore("nothing of ours", root, 1<<40)
	_, err := b.Start(t.Context(), handoff.Request{Target: "callee"})
	must(t, err)
	if got := b.Caller().Tree.Of("tokens", root); got != 540 {
		t.Errorf("%d tokens", got)
	}
	b.Caller().Tree.Restore(handoff.BudgetCalls, root, 3)
	var refusal *handoff.Refusal
	if _, err := b.Start(t.Context(), handoff.Request{Target: "callee"}); !errors.As(err, &refusal) || refusal.Rule != handoff.RuleCalls {
		t.Errorf("%v", err)
	}
}

func TestManyCallsAtOnceKeepEveryBudget(t *testing.T) {
	t.Parallel()
	tree := handoff.NewTree(tokens{10})
	path := []handoff.Step{{Run: "a", Budgets: capsule.Budgets{Tokens: 250}}}
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() { _ = tree.Spend(path, handoff.Limits{Calls: 40}) }) // most are refused
	}
	calls.Wait()
	if c, k := tree.Of(handoff.BudgetCalls, "a"), tree.Of("tokens", "a"); c != 25 || k != 250 {
		t.Errorf("%d calls, %d tokens", c, k)
	}
}
