package container

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// What happens to a sandbox between its choice and its first step must not happen to its run.
func TestAWaitingSandboxThatFailsItsRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(*shelf)
	}{
		{"it is dead", (*shelf).dies},
		{"its directory is gone", func(s *shelf) { must(os.RemoveAll(s.waits.Layout.Dir)) }},
		{"its input directory is gone", func(s *shelf) { must(os.RemoveAll(filepath.Join(s.waits.Layout.Dir, "io"))) }},
		{"its line is cut", func(s *shelf) { s.waits.Runtime.Release() }},
	} {
		for _, stubborn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, can't be removed: %v", c.name, stubborn), func(t *testing.T) {
				s := newShelf(t, sums, false, "")
				if stubborn {
					s.over.(*lossy).failsAt(failure{"Remove", 1, false})
				} else {
					s.over.(*lossy).failsAt()
				}
				x := s.executionOf("r1", `{"n":7}`)
				var once bool
				x.run.LedBy(entering{at: api.Starting, do: func() {
					if !once {
						once = true
						c.spoil(s)
					}
				}}, nil)
				s.succeeds(x)
				late := c.name == "it is dead" && way(x) == cameOutLate
				if way(x) != cameOut && !late || x.attempt.origin != fresh || x.run.Record.Container.ID == s.waits.Runtime.ID() {
					t.Errorf("its way: %s", way(x))
				}
				if id, left := x.saved.Sandboxes[-1]; left != stubborn || left && id != s.waits.ID || x.saved.Sandboxes[1] != "" {
					t.Errorf("it remembers %v", x.saved.Sandboxes)
				}
				s.ends(x)
				if s.kind.pool.Has(s.waits.ID) {
					t.Error("the pool still knows it")
				}
			})
		}
	}
}

// A program that waits for its run may die before it gets it. Nobody knows that before it has
// been asked to run.
func TestALoadedProgramThatNeverAskedFailsNoRun(t *testing.T) {
	t.Parallel()
	s := newShelf(t, serves, true, "")
	x := s.executionOf("r1", `{"n":7}`)
	var once sync.Once
	x.run.LedBy(entering{at: api.Starting, do: func() { once.Do(s.dies) }}, nil)
	s.succeeds(x)
	if way(x) != neverBegan || x.attempt.origin != fresh {
		t.Errorf("its way: %s", way(x))
	}
	s.ends(x)
	s.gone()
}

func TestASandboxWhoseRunCantBeStoredIsDiscarded(t *testing.T) {
	t.Parallel()
	s := newShelf(t, sums, false, "")
	x := s.executionOf("r1", `{"n":7}`)
	x.run.LedBy(entering{at: api.Starting, err: runtime.ErrDetach}, nil)
	if _, err := x.Attempt(t.Context()); err == nil {
		t.Fatal("it goes on")
	}
	s.gone()
}

// A process may die at any step of a claim. What it had stored is that the run has the sandbox.
func TestAClaimThatADeadProcessBegan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		dies func(*shelf, *execution) // how far the process came
		came string
	}{
		{"before anything was moved", func(*shelf, *execution) {}, begunAgain},
		{"when the directory was moved", func(s *shelf, x *execution) { must(os.Rename(s.waits.Layout.Dir, x.run.AttemptDir())) }, neverBegan},
		{"when the input was there", func(s *shelf, x *execution) { must(x.pooled.moveIn(s.waits)) }, neverBegan},
		{"when the container was gone as well", func(s *shelf, _ *execution) {
			must(runtime.RemoveAll(context.Background(), s.engine, s.waits.ID, "me"))
		}, begunAgain},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t, sums, false, "")
			x := s.executionOf("r1", `{"n":7}`)
			x.run.Durable = true
			if got := s.kind.pool.Acquire(s.unit); got != s.waits {
				t.Fatalf("it acquires %v", got)
			}
			x.pooled.acquire(s.waits)
			must(x.run.Enter(api.Starting, ""))
			c.dies(s, x)
			s.letsGo()
			s.empty()
			next := s.resumed(x)
			got, err := next.Resume(t.Context())
			if err != nil || got.Outcome != api.Success || string(got.Output) != `{"n":7}` {
				t.Fatalf("%+v %+v, %v", got, got.Failure, err)
			}
			if way(next) != c.came || next.run.Record.Container.ID == s.waits.Runtime.ID() {
				t.Errorf("its way: %s", way(next))
			}
			s.ends(next)
			s.gone()
		})
	}
}

// waitsUntil is a program that has the same end as another, later.
func waitsUntil(gate <-chan struct{}, program enginetest.Program) enginetest.Program {
	return func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		select {
		case <-gate:
			return program(ctx, spec, stdout, stderr)
		case <-ctx.Done():
			return 137
		}
	}
}

func TestARunInAClaimedSandboxIsResumed(t *testing.T) {
	t.Parallel()
	for name, vanishes := range map[string]bool{"with its container": false, "without it": true} {
		t.Run(name, func(t *testing.T) {
			gate := make(chan struct{})
			s := newShelf(t, waitsUntil(gate, sums), false, "")
			x := s.executionOf("r1", `{"n":7}`)
			x.run.Durable = true
			ctx, detach := context.WithCancelCause(t.Context())
			x.run.LedBy(leaving{detach: detach}, nil)
			if _, err := x.Attempt(ctx); err == nil || x.attempt.origin != warm {
				t.Fatalf("error %v", err)
			}
			x.Release()
			s.empty()
			next := s.resumed(x)
			if !s.kind.pool.Has(s.waits.ID) {
				t.Error("a sweep would take it for a stray")
			}
			if vanishes {
				must(s.engine.Remove(t.Context(), s.waits.Runtime.ID()))
			}
			close(gate)
			got, err := next.Resume(t.Context())
			switch {
			case vanishes && (err == nil || !strings.Contains(err.Error(), "vanished")):
				t.Errorf("%+v, %v", got, err)
			case !vanishes && (err != nil || string(got.Output) != `{"n":7}` || next.attempt.origin != warm):
				t.Errorf("%+v %+v, %v", got, got.Failure, err)
			}
			s.ends(next)
			s.gone()
		})
	}
}
