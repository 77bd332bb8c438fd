package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// yardOf builds images that take as long as the trial wants.
type yardOf struct {
	builds *builds
	begun  atomic.Int32
	ended  atomic.Int32
	finish chan struct{} // closed: builds end
}

func newYardOf(opts BuildOptions) *yardOf {
	return &yardOf{builds: newBuilds(opts), finish: make(chan struct{})}
}

func (y *yardOf) build(ctx context.Context, tell func(runtime.BuildEvent)) (runtime.Image, error) {
	y.begun.Add(1)
	defer y.ended.Add(1)
	tell(runtime.BuildEvent{Step: "1", State: runtime.StepStarted})
	select {
	case <-y.finish:
		tell(runtime.BuildEvent{Step: "1", State: runtime.StepDone})
		return runtime.Image{ID: "built"}, nil
	case <-ctx.Done():
		return runtime.Image{}, fmt.Errorf("build: %w", ctx.Err())
	}
}

func quiet(runtime.BuildEvent) {}

// join waits for an image in a goroutine of its own.
func (y *yardOf) join(ctx context.Context, ref string) <-chan error {
	told := make(chan error, 1)
	go func() {
		_, err := y.builds.join(ctx, ref, quiet, y.build)
		told <- err
	}()
	synctest.Wait()
	return told
}

func TestAllWhoWantAnImageShareOneBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYardOf(BuildOptions{AtOnce: 4})
		var all sync.WaitGroup
		var steps atomic.Int32
		for range 10 {
			all.Go(func() {
				image, err := y.builds.join(t.Context(), "a", func(runtime.BuildEvent) { steps.Add(1) }, y.build)
				if err != nil || image.ID != "built" {
					t.Errorf("%+v, %v", image, err)
				}
			})
		}
		synctest.Wait()
		close(y.finish)
		all.Wait()
		if n := y.begun.Load(); n != 1 || steps.Load() < 10 {
			t.Errorf("%d builds, %d steps were told", n, steps.Load())
		}
		if slices.Contains(y.builds.references(), "a") {
			t.Error("it is still under way")
		}
	})
}

func TestOnlySoManyImagesAreBuiltAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYardOf(BuildOptions{AtOnce: 2, Waiting: 2, Wait: time.Minute})
		first := []<-chan error{y.join(t.Context(), "a"), y.join(t.Context(), "b")}
		waiting := []<-chan error{y.join(t.Context(), "c"), y.join(t.Context(), "d")}
		if n := y.begun.Load(); n != 2 {
			t.Errorf("%d builds have begun", n)
		}
		if err := <-y.join(t.Context(), "e"); !fault.Is(err, fault.Busy) {
			t.Errorf("a fifth one: %v", err)
		}
		for _, each := range waiting {
			if err := <-each; !fault.Is(err, fault.Busy) || y.begun.Load() != 2 { // a minute later
				t.Errorf("one that waited too long: %v", err)
			}
		}
		close(y.finish)
		for _, each := range append(first, y.join(t.Context(), "f")) {
			if err := <-each; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestABuildHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYardOf(BuildOptions{Timeout: 10 * time.Minute})
		began := time.Now()
		err := <-y.join(t.Context(), "a")
		if !fault.Is(err, fault.BuildTimeout) || fault.Public(err).Hint == "" || time.Since(began) != 10*time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestABuildEndsWithTheLastWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYardOf(BuildOptions{AtOnce: 1})
		because := errors.New("because")
		one, leaveOne := context.WithCancelCause(t.Context())
		other, leaveOther := context.WithCancelCause(t.Context())
		first, second := y.join(one, "a"), y.join(other, "a")
		leaveOne(because)
		if err := <-first; !errors.Is(err, because) {
			t.Errorf("who is cancelled waits on: %v", err)
		}
		synctest.Wait()
		if y.ended.Load() != 0 {
			t.Error("the build has ended, though somebody waits for it")
		}
		leaveOther(because)
		if err := <-second; !errors.Is(err, because) {
			t.Errorf("the last one: %v", err)
		}
		y.builds.tasks.Wait()
		if y.ended.Load() != 1 {
			t.Error("the build goes on for nobody")
		}
		close(y.finish)
		if err := <-y.join(t.Context(), "a"); err != nil {
			t.Errorf("a new build: %v", err)
		}
	})
}

// A call whose caller has less time than the build takes would never succeed, if its build began anew
// with each call.
func TestABuildGoesOnForTheCallsAfterOneWithoutTime(t *testing.T) {
	for _, cause := range []error{run.ErrDeadline, run.ErrCallerEnded} {
		synctest.Test(t, func(t *testing.T) {
			y := newYardOf(BuildOptions{})
			ctx, leave := context.WithCancelCause(t.Context())
			call := y.join(ctx, "a")
			leave(cause)
			if err := <-call; !errors.Is(err, cause) {
				t.Errorf("the call waits on: %v", err)
			}
			next := y.join(t.Context(), "a")
			close(y.finish)
			if err := <-next; err != nil || y.begun.Load() != 1 {
				t.Errorf("after %v: %v, %d builds", cause, err, y.begun.Load())
			}
		})
	}
}

func TestABuildThatGoesOnEndsWithAOD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYardOf(BuildOptions{})
		ctx, leave := context.WithCancelCause(t.Context())
		call := y.join(ctx, "a")
		leave(run.ErrDeadline)
		<-call
		synctest.Wait()
		if y.ended.Load() != 0 {
			t.Error("the build has ended with the call")
		}
		y.builds.close()
		if y.ended.Load() != 1 {
			t.Error("the build goes on")
		}
	})
}

func TestWhoIsCancelledBeforeBuildsNothing(t *testing.T) {
	t.Parallel()
	y := newYardOf(BuildOptions{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errAway)
	if _, err := y.builds.join(ctx, "a", quiet, y.build); !errors.Is(err, errAway) || y.begun.Load() != 0 {
		t.Errorf("%v, %d builds", err, y.begun.Load())
	}
}
