package orchestrator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// quotasFor has each of some teams have one quota.
func quotasFor(q models.Quota, teams ...string) models.Quotas {
	of := models.Quotas{Teams: map[string]models.Quota{}}
	for _, team := range teams {
		of.Teams[team] = q
	}
	return of
}

func (w *modelWorld) submitFor(owner access.Owner, s script) (string, error) {
	record, _, err := w.service.Submit(access.WithOwner(w.t.Context(), owner), spool.Submission{Unit: "caller", Input: encoded(s)})
	return record.ID, err
}

// used is what a team has of the usage, in sum.
func (w *modelWorld) used(by ...string) []api.UsageSum {
	w.t.Helper()
	sums, err := w.service.Figures.Usage(trusted.Context(w.t), api.UsageFilter{By: by})
	if err != nil {
		w.t.Fatal(err)
	}
	return sums
}

// A request of the tests can take 1219 tokens at most, and takes 10.
func TestAQuotaHoldsForAllRunsOfATeamOrAToken(t *testing.T) {
	t.Parallel()
	day, month := models.Quota{Day: ledger.Amount{Tokens: 1230}}, models.Quota{Month: ledger.Amount{Cost: 1_230_000}}
	for name, q := range map[string]models.Quotas{
		"tokens of a team in a day":  quotasFor(day, "a"),
		"cost of a team in a month":  quotasFor(month, "a"),
		"tokens of a token in a day": {Tokens: map[string]models.Quota{"ada": day}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModelWorld(t, "", func(o *settings) { o.Models.Quotas = q })
			ada, eve := access.Owner{Team: "a", By: "ada"}, access.Owner{Team: "b", By: "eve"}
			for range 3 {
				id, err := w.submitFor(ada, script{Mark: "a", Asks: asks(2)})
				if err != nil {
					t.Fatal(err)
				}
				w.await(id)
			}
			got := w.told("a")
			if got[0] != "200" || got[1] != "200" || got[5] != "402" {
				t.Errorf("%q", w.answers["a"])
			}
			spent := w.double.requests() * billedEach
			id, err := w.submitFor(eve, script{Mark: "b", Asks: asks(1)})
			if err != nil {
				t.Fatal(err)
			}
			w.await(id)
			if got := w.told("b"); !cmp.Equal(got, times("200", 1)) {
				t.Errorf("another team is told %q", got)
			}
			left, err := w.service.Quotas.List(access.WithGrant(t.Context(), access.Grant{Name: "ada", Teams: []string{"a"}, Scopes: []access.Scope{access.Read}}))
			if err != nil || len(left) != 1 || !slices.Contains([]string{fmt.Sprint(spent), api.Cost(spent * 1000).String()}, left[0].Used.String()) || !left[0].Opens.After(time.Now()) {
				t.Errorf("%+v %v", left, err)
			}
			left, err = w.service.Quotas.List(access.WithGrant(t.Context(), access.Grant{Name: "eve", Teams: []string{"b"}, Scopes: []access.Scope{access.Read}}))
			if err != nil || len(left) != 0 {
				t.Errorf("another team is told of %+v %v", left, err)
			}
		})
	}
}

// Who has nothing left is told so when a run is asked for, if its unit asks models; the store knows it after a restart.
func TestNothingBeginsForATeamThatHasSpentAll(t *testing.T) {
	t.Parallel()
	w := newModelWorld(t, "", func(o *settings) { o.Models.Quotas = quotasFor(models.Quota{Day: ledger.Amount{Tokens: 1229}}, "a") })
	a := access.Owner{Team: "a"}
	id, err := w.submitFor(a, script{Mark: "a", Asks: asks(2)})
	if err != nil {
		t.Fatal(err)
	}
	w.await(id)
	w.stop()
	w.opts.Models.Quotas = quotasFor(models.Quota{Day: ledger.Amount{Tokens: 20}}, "a")
	w.start()
	_, err = w.submitFor(a, script{Mark: "a"})
	if !fault.Is(err, fault.Quota) || fault.HTTPStatus(err) != 402 {
		t.Errorf("%v", err)
	}
	record, _, err := w.service.Submit(access.WithOwner(t.Context(), a), spool.Submission{Unit: "worker", Input: encoded(orders{})})
	if err != nil {
		t.Fatalf("a unit that asks no model: %v", err)
	}
	w.await(record.ID)
	w.models().Bound(ledger.Amount{}, models.Quotas{})
	if id, err = w.submitFor(a, script{Mark: "a"}); err != nil {
		t.Fatalf("without a quota: %v", err)
	}
	w.await(id)
}

// Two teams have trees of runs that ask at once, while servers die and the quota changes: no window is passed at any
// time, and what was used is what the records say and the provider bills, or more by what is estimated.
func TestNoWindowIsPassedOverRestarts(t *testing.T) {
	t.Parallel()
	restarts := 4
	if testing.Short() {
		restarts = 1
	}
	dice := rand.New(rand.NewPCG(40, uint64(restarts)))
	limit := ledger.Amount{Tokens: 40_000, Cost: 30_000_000}
	w := newModelWorld(t, "", func(o *settings) {
		o.Concurrency, o.Models.Quotas = 20, quotasFor(models.Quota{Day: limit}, "a", "b")
	})
	var ids []string
	for n := range 10 {
		s := script{Mark: fmt.Sprint("root", n), AtOnce: true, Asks: asks(3)}
		for m := range 3 {
			s.Calls = append(s.Calls, script{Mark: fmt.Sprint("below", n, m), Asks: asks(3)})
		}
		id, err := w.submitFor(access.Owner{Team: []string{"a", "b"}[n%2]}, s)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	passed := func() {
		list, err := w.service.Quotas.List(trusted.Context(t))
		for _, q := range list {
			used, _ := q.Used.Float64()
			if most, _ := q.Limit.Float64(); used > most {
				t.Errorf("%+v", q)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	for n := range restarts {
		before := w.double.requests()
		within(t, func() bool { return w.double.requests() >= before+3 || w.allOver(ids) }, func() string { return "nobody asks" })
		time.Sleep(time.Duration(dice.Int64N(int64(20 * time.Millisecond)))) // the moment is a matter of chance
		passed()
		w.stop()
		w.opts.Models.Quotas = quotasFor(models.Quota{Day: ledger.Amount{Tokens: limit.Tokens - int64(n), Cost: limit.Cost}}, "a", "b")
		w.start()
		passed()
	}
	var charged, estimated, cost int64
	for _, id := range ids {
		record := w.await(id)
		if m := record.Models; m != nil {
			estimated += m.Estimated
			tree := api.ModelTotal{Charged: m.Charged, Cost: m.Cost}
			if m.Tree != nil {
				tree = *m.Tree
			}
			charged, cost = charged+tree.Charged, cost+int64(tree.Cost)
		}
	}
	passed()
	var used, usedCost int64
	for _, sum := range w.used("team", "unit", "model", "day") {
		if sum.Team == "default" || sum.Model != "m" || sum.Unit != "caller" {
			t.Errorf("%+v", sum)
		}
		used, usedCost = used+sum.Tokens, usedCost+int64(sum.Cost)
	}
	paid := int64(w.double.requests()) * billedEach
	if used != charged || usedCost != cost || used < paid || charged-paid > 0 && used == paid {
		t.Errorf("%d tokens and %d are in the usage, %d and %d in the records, %d were billed", used, usedCost, charged, cost, paid)
	}
	t.Logf("%d requests, %d of the roots' estimated, %d of %d tokens are estimates", w.double.requests(), estimated, used-paid, used)
}

// allOver reports whether all runs have come to their end.
func (w *modelWorld) allOver(ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		record, err := w.service.Runs.Get(trusted.Context(w.t), id)
		return err != nil || record.Outcome == ""
	})
}
