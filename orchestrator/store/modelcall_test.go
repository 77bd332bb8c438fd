package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func addCall(t *testing.T, s *Store, run string, c ModelCall) ModelCall {
	t.Helper()
	var err error
	c.N, err = s.ModelCalls.Add(t.Context(), run, c)
	must(t, err)
	return c
}

func TestModelCallsComeBackInTheirOrder(t *testing.T) {
	s, r, other := open(t), aRun(1), aRun(2)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	must(t, s.Runs.Insert(t.Context(), other, Key{}))
	want := []ModelCall{
		addCall(t, s, r.ID, ModelCall{At: epoch, Tokens: 100, Cost: 1 << 60}),
		addCall(t, s, r.ID, ModelCall{At: epoch.Add(time.Second), Tokens: 200}),
		addCall(t, s, r.ID, ModelCall{At: epoch.Add(time.Minute), Tokens: 1, Settled: true, Estimated: true, Data: []byte(`{"x":1}`)}),
	}
	if first := addCall(t, s, other.ID, ModelCall{At: epoch}); first.N != 1 {
		t.Errorf("the first call of another run is number %d", first.N)
	}
	want[1].Tokens, want[1].Cost, want[1].Settled, want[1].Data = 7, 9, true, []byte(`{"input":7}`)
	must(t, s.ModelCalls.Save(t.Context(), r.ID, want[1]))
	for after := range want {
		got, err := s.ModelCalls.List(t.Context(), r.ID, int64(after), 0)
		must(t, err)
		if diff := cmp.Diff(want[after:], got); diff != "" {
			t.Error(diff)
		}
	}
	got, err := s.ModelCalls.List(t.Context(), r.ID, 1, 1)
	must(t, err)
	if diff := cmp.Diff(want[1:2], got); diff != "" {
		t.Error(diff)
	}
}

func TestModelCallsOfARunThatIsNotThere(t *testing.T) {
	s := open(t)
	_, err := s.ModelCalls.Add(t.Context(), newID(), ModelCall{})
	wantKind(t, err, fault.NotFound)
	wantKind(t, s.ModelCalls.Save(t.Context(), newID(), ModelCall{N: 1}), fault.NotFound)
	if calls, err := s.ModelCalls.List(t.Context(), newID(), 0, 0); err != nil || len(calls) > 0 {
		t.Errorf("%v %v", calls, err)
	}
	r := aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	must(t, s.ModelCalls.Save(t.Context(), r.ID, ModelCall{N: 1, Tokens: 5}))
	if spent, err := s.ModelCalls.Spending(t.Context(), r.ID); err != nil || len(spent) > 0 {
		t.Errorf("a call that was never added counts: %v %v", spent, err)
	}
}

// What was only set aside counts as if it were spent.
func TestTheSpendingOfATreeIsThatOfEachOfItsRuns(t *testing.T) {
	s, root, stranger := open(t), aRun(1), aRun(2)
	child, idle := aRun(3), aRun(4)
	child.Parent, child.Root, idle.Parent, idle.Root = root.ID, root.ID, root.ID, root.ID
	for _, r := range []Run{root, child, idle, stranger} {
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
	}
	addCall(t, s, root.ID, ModelCall{At: epoch, Tokens: 10, Cost: 1})
	settled := addCall(t, s, child.ID, ModelCall{At: epoch, Tokens: 500, Cost: 500})
	settled.Tokens, settled.Cost, settled.Settled = 20, 2, true
	must(t, s.ModelCalls.Save(t.Context(), child.ID, settled))
	addCall(t, s, child.ID, ModelCall{At: epoch, Tokens: 300, Cost: 30})
	addCall(t, s, stranger.ID, ModelCall{At: epoch, Tokens: 7})
	spent, err := s.ModelCalls.Spending(t.Context(), root.ID)
	must(t, err)
	got := map[string]ModelSpending{}
	for _, one := range spent {
		got[one.Run] = one
	}
	want := map[string]ModelSpending{root.ID: {root.ID, 10, 1}, child.ID: {child.ID, 320, 32}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestModelCallsGoWithTheirRun(t *testing.T) {
	s, r := open(t), ended(aRun(1))
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	addCall(t, s, r.ID, ModelCall{At: epoch, Tokens: 10})
	must(t, s.Runs.Delete(t.Context(), r.ID))
	var left int
	must(t, s.core.writer.db.QueryRowContext(t.Context(), "SELECT count(*) FROM model_calls").Scan(&left))
	if left != 0 {
		t.Errorf("%d are left", left)
	}
}
