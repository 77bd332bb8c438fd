package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestAsideGivesTheSlotToOtherUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTrial(t, 1)
		q.enter(0, "a1", "a2", "b1", "b2")
		ready := make(chan struct{})
		done := make(chan error, 1)
		go func() { done <- q.permits["a1"].Aside(t.Context(), func() { <-ready }) }()
		synctest.Wait()
		q.leave("b1")
		close(ready)
		synctest.Wait() // it comes before all that have not begun
		q.leave("b2")
		if err := <-done; err != nil {
			t.Error(err)
		}
		q.leave("a1", "a2")
		if diff := cmp.Diff([]string{"a1", "b1", "b2", "a2"}, q.order); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOneWhoIsCancelledAsideHoldsNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTrial(t, 1)
		q.enter(0, "a1", "a2")
		ctx, cancel := context.WithCancelCause(t.Context())
		because := errors.New("because")
		err := q.permits["a1"].Aside(ctx, func() { cancel(because) })
		if !errors.Is(err, because) {
			t.Errorf("%v", err)
		}
		q.leave("a1")
		if diff := cmp.Diff([]string{"a1", "a2"}, q.order); diff != "" {
			t.Error(diff)
		}
		q.leave("a2")
	})
}

// What a run waits for on one machine may be on another one.
func TestOneWhoIsAsideHoldsNobodyBackElsewhere(t *testing.T) {
	t.Parallel()
	q := New(1)
	q.SetMachine("far", Machine{Slots: 1})
	q.SetMachine("big", Machine{Slots: 1, Labels: []string{"gpu"}})
	first := q.Occupy(Run{ID: "first", Unit: "u", Machine: "far"})
	err := first.Aside(t.Context(), func() {
		second := q.Reenter(Run{ID: "second", Unit: "u", Rank: func(m string) int { return len(m) }})
		third := q.Reenter(Run{ID: "third", Unit: "u"})
		fourth := q.Reenter(Run{ID: "fourth", Unit: "u"})
		defer fourth.Leave()
		if second.Machine() == "far" || third.Machine() == "far" || second.Machine() == third.Machine() {
			t.Errorf("they begin at %q and %q", second.Machine(), third.Machine())
		}
		place, waits := q.PlaceOf("u", "fourth")
		if !waits || place.Reason != ForSlot {
			t.Errorf("the last one waits %v for %q", waits, place.Reason)
		}
		if err := q.Takes(Run{Unit: "u"}, 1); err == nil {
			t.Error("a run would begin at once where another one holds it back")
		}
		other := q.Reenter(Run{ID: "other", Unit: "v"})
		if running := q.Running("far"); running != 1 || other.Machine() != "far" {
			t.Errorf("the slot that was lent: %d run, the other unit's at %q", running, other.Machine())
		}
		other.Leave()
		second.Leave()
		third.Leave()
	})
	if err != nil || first.Machine() != "far" || q.Running("far") != 1 {
		t.Errorf("%v, %q, %d", err, first.Machine(), q.Running("far"))
	}
	first.Leave()
}
