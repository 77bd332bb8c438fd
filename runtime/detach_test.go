package runtime_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/runtime"
)

func TestDetachingLeavesTheSandboxAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, polite)
		b.spec.Durable = true
		s := b.start(t, b)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(runtime.ErrDetach) })
		began := time.Now()
		end, err := s.Wait(ctx)
		if !errors.Is(err, runtime.ErrDetach) || end != (runtime.End{}) || time.Since(began) != time.Second {
			t.Errorf("%+v, %v", end, err)
		}
		s.Release()
		if state, err := b.Inspect(t.Context(), s.ID()); err != nil || !state.Running {
			t.Errorf("%+v, %v", state, err)
		}
		if calls := b.Calls(); slices.Contains(calls, "Stop") || slices.Contains(calls, "Kill") {
			t.Errorf("calls %v", calls)
		}
		b.remove(t, b.adopt(t, s.ID()))
		if err := s.Remove(t.Context()); err != nil { // after Release, and gone
			t.Error(err)
		}
	})
}

func TestReleaseEndsTheSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, sleeper)
		engine := &listening{harness: b}
		s := b.start(t, engine)
		s.Release()
		<-engine.until
		b.remove(t, s)
	})
}
