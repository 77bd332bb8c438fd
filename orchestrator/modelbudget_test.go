package orchestrator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

// A request of the tests can take 1219 tokens at most, and takes 10.
func TestABudgetOfModelsHoldsWhoeverSetIt(t *testing.T) {
	t.Parallel()
	given := func(b capsule.Budgets) func(*settings) {
		return func(o *settings) { o.Units = map[string]units.Settings{"caller": {Given: unit.Given{Budgets: b}}} }
	}
	for name, c := range map[string]struct {
		agent  string
		change func(*settings)
	}{
		"tokens in agent.yaml":     {agent: "budgets: {tokens: 1230}\n"},
		"a cost in agent.yaml":     {agent: "budgets: {cost: 0.00123}\n"},
		"model_tokens":             {change: func(o *settings) { o.Models.Budget.Tokens = 1230 }},
		"model_cost":               {change: func(o *settings) { o.Models.Budget.Cost = 1_230_000 }},
		"unit.caller.model_tokens": {change: given(capsule.Budgets{Tokens: 1230})},
		"unit.caller.model_cost":   {change: given(capsule.Budgets{Cost: 1_230_000})},
		"the smaller one":          {agent: "budgets: {tokens: 100000}\n", change: func(o *settings) { o.Models.Budget.Tokens = 1230 }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change == nil {
				c.change = func(*settings) {}
			}
			w := newModelWorld(t, c.agent, c.change)
			record := w.await(w.submitScript(script{Mark: "a", Asks: asks(6)}))
			got := w.told("a")
			if !slices.Contains(got, "200") || !slices.Contains(got, "402") || got[len(got)-1] != "402" {
				t.Errorf("%q", w.answers["a"])
			}
			if paid := int64(w.double.requests()) * billedEach; record.Models == nil || record.Models.Charged != paid || record.Models.Tree != nil {
				t.Errorf("%d were paid: %+v", paid, record.Models)
			}
			keepsSchema(t, record)
		})
	}
}

func TestWithoutAPriceNothingIsAskedUnderABudgetOfCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent string
		quota models.Quota
	}{"of a run": {agent: "budgets: {cost: 1}\n"}, "of a team": {quota: models.Quota{Month: ledger.Amount{Cost: 1e9}}}} {
		t.Run(name, func(t *testing.T) {
			w := newModelWorld(t, c.agent, func(o *settings) { o.Models.Quotas = quotasFor(c.quota, "default") })
			known := w.double.catalog()
			m := known.Models["m"]
			m.Price = nil
			known.Models["m"] = m
			if err := w.opts.Models.Gateway.Configure(known); err != nil {
				t.Fatal(err)
			}
			w.await(w.submitScript(script{Mark: "a", Asks: asks(1)}))
			if got := w.told("a"); !cmp.Equal(got, times("402", 1)) || w.double.requests() > 0 {
				t.Errorf("%q", w.answers["a"])
			}
		})
	}
}

// An image takes what nobody knows at a provider of this kind, and the context window at most.
func TestAnImageNeedsAWindowWhereABudgetHolds(t *testing.T) {
	t.Parallel()
	const image = `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`
	for name, c := range map[string]struct {
		agent  string
		tokens int64
		window int64
		want   string
	}{
		"no budget":              {"", 0, 0, "200"},
		"a budget of the server": {"", 100_000, 0, "402"},
		"a budget of the unit":   {"budgets: {tokens: 100000}\n", 0, 0, "402"},
		"a budget of cost":       {"budgets: {cost: 1}\n", 0, 0, "402"},
		"a window":               {"", 100_000, 50_000, "200"},
		"a window over a budget": {"", 100_000, 100_000, "402"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModelWorld(t, c.agent, func(o *settings) { o.Models.Budget.Tokens = c.tokens })
			known := w.double.catalog()
			m := known.Models["m"]
			m.Context = c.window
			known.Models["m"] = m
			if err := w.opts.Models.Gateway.Configure(known); err != nil {
				t.Fatal(err)
			}
			w.await(w.submitScript(script{Mark: "a", Asks: []modelAsk{{Body: image}}}))
			if got := w.told("a"); !cmp.Equal(got, []string{c.want}) {
				t.Errorf("%q", w.answers["a"])
			}
		})
	}
}

// One caller and 5 below it ask 40 times each, at once: what is set aside and spent together is
// never over the budget, and all that can't fit is refused.
func TestATreeOfRunsIsNeverOverItsBudget(t *testing.T) {
	t.Parallel()
	const budget = 2500
	w := newModelWorld(t, "budgets: {tokens: 2500}\n", func(o *settings) { o.Concurrency = 10 })
	s := script{Mark: "root", AtOnce: true}
	for n := range 5 {
		s.Calls = append(s.Calls, script{Mark: fmt.Sprint("callee", n), AtOnce: true, Asks: asks(40)})
	}
	id := w.submitScript(s)
	w.double.mu.Lock()
	w.double.looks = func() {
		spent, reserved := w.models().Spent(id)
		if sum := spent.Plus(reserved); sum.Tokens > budget {
			t.Errorf("%d tokens are spent or set aside", sum.Tokens)
		}
	}
	w.double.mu.Unlock()
	root := w.await(id)
	statuses := map[string]int{}
	for n := range 5 {
		for _, status := range w.told(fmt.Sprint("callee", n)) {
			statuses[status]++
		}
	}
	paid := int64(w.double.requests()) * billedEach
	if statuses["200"] != w.double.requests() || statuses["402"] == 0 || statuses["200"]+statuses["402"] != 200 || paid > budget || paid < budget/2 {
		t.Errorf("%v, %d requests", statuses, w.double.requests())
	}
	w.wantTree(root, 0, paid)
	var below int64
	for _, call := range root.Calls {
		record := w.await(call.ID)
		if record.Models == nil { // all that it asked was refused
			continue
		}
		if record.Models.Tree != nil {
			t.Errorf("callee %+v", record.Models)
		}
		below += record.Models.Charged
	}
	if below != paid {
		t.Errorf("the callees spent %d of %d", below, paid)
	}
}

// wantTree wants that a run spent so many tokens itself, and so many with those below it.
func (w *modelWorld) wantTree(record api.Record, own, all int64) {
	w.t.Helper()
	want := &api.ModelTotal{Charged: all, Cost: api.Cost(all * 1000)}
	if m := record.Models; m == nil || m.Charged != own || !cmp.Equal(m.Tree, want) {
		w.t.Errorf("%+v, not %d and %d", m, own, all)
	}
	keepsSchema(w.t, record)
}

func TestTheRecordsOfATreeHaveItsTotals(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "")
	leaf := script{Mark: "leaf", Asks: asks(3)}
	id := w.submitScript(script{Mark: "root", Asks: asks(1), Calls: []script{{Mark: "knot", Asks: asks(2), Calls: []script{leaf}}}})
	root := w.await(id)
	knot := w.await(root.Calls[0].ID)
	end := w.await(knot.Calls[0].ID)
	w.wantTree(root, 10, 60)
	w.wantTree(knot, 20, 50)
	if end.Models == nil || end.Models.Charged != 30 || end.Models.Tree != nil {
		t.Errorf("%+v", end.Models)
	}
}

// Of three at once only one has room, and the others take their turns.
func TestWhatHasRoomWhenOthersAreDoneWaitsForThem(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "budgets: {tokens: 2000}\n")
	release := w.double.holds()
	defer release()
	id := w.submitScript(script{Mark: "a", AtOnce: true, Asks: asks(3)})
	within(t, func() bool { return w.double.now() == 1 }, func() string { return "nobody asks" })
	if spent, reserved := w.models().Spent(id); spent != (ledger.Amount{}) || reserved.Tokens <= 1000 {
		t.Errorf("%+v %+v: the test has no point", spent, reserved)
	}
	release()
	w.await(id)
	if got := w.told("a"); !cmp.Equal(got, times("200", 3)) || w.double.most != 1 {
		t.Errorf("%q, %d at once", w.answers["a"], w.double.most)
	}
}
