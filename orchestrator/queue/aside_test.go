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
