package runtime_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/agent-on-demand/aod/runtime"
)

func TestARunThatIsDoneLeavesItsSandboxAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, polite)
		s := b.start(t, b)
		done := make(chan struct{})
		close(done)
		end, err := s.WaitOrPosted(t.Context(), done)
		if err != nil || !end.Early || !end.Reusable || end.Cause != nil || end.ExitCode != 0 || !s.Running() {
			t.Errorf("end %+v, %v", end, err)
		}
		b.remove(t, s)
	})
}

func TestEveryOtherEndComesBeforeThatOfARunThatIsDone(t *testing.T) {
	done := make(chan struct{})
	close(done)
	t.Run("an exit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(context.Context, runtime.ContainerSpec, io.Writer, io.Writer) int { return 7 })
			s := b.start(t, b)
			synctest.Wait()
			if end, err := s.WaitOrPosted(t.Context(), done); err != nil || end.Reusable || end.ExitCode != 7 {
				t.Errorf("end %+v, %v", end, err)
			}
			b.remove(t, s)
		})
	})
	t.Run("the end of its time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, polite)
			s := b.start(t, b)
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errEnough)
			if end, err := s.WaitOrPosted(ctx, done); err != nil || end.Reusable || !errors.Is(end.Cause, errEnough) {
				t.Errorf("end %+v, %v", end, err)
			}
			b.remove(t, s)
		})
	})
}
