package runtime_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// talker says a line at once, one after a minute, and ends a minute later.
func talker(ctx context.Context, _ runtime.ContainerSpec, stdout, stderr io.Writer) int {
	for _, line := range []string{"one\n", "two\n"} {
		io.WriteString(stdout, line)
		io.WriteString(stderr, line)
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
		}
	}
	return 7
}

// begin starts a durable sandbox as a process does that dies the moment after.
func (b *harness) begin(t *testing.T) (id string) {
	t.Helper()
	b.spec.Durable = true
	log := runtime.NewLog(1<<20, func(runtime.LogLine) {})
	s, err := runtime.Start(t.Context(), b, b.spec, b.layout, log)
	if err != nil {
		t.Fatal(err)
	}
	s.Release()
	s.Release() // again isn't an error
	return s.ID()
}

// made creates a durable container as a process does that dies before it starts it.
func (b *harness) made(t *testing.T) (id string) {
	t.Helper()
	b.spec.Durable = true
	var refused error = fault.New(fault.Internal, "not now")
	ctx, cancel := context.WithCancelCause(t.Context())
	b.Hook = func(_ context.Context, method string) error {
		if method == "Start" {
			cancel(runtime.ErrDetach)
			return refused
		}
		return nil
	}
	_, err := runtime.Start(ctx, b, b.spec, b.layout, runtime.NewLog(0, nil))
	if !errors.Is(err, runtime.ErrDetach) || !errors.Is(err, refused) {
		t.Fatal(err)
	}
	b.Hook = nil
	refs, err := runtime.Find(t.Context(), b, b.spec.Run, b.spec.Owner)
	if err != nil || len(refs) != 1 || refs[0].State != runtime.StatusCreated {
		t.Fatalf("%+v, %v", refs, err)
	}
	return refs[0].ID
}

func (b *harness) adopt(t *testing.T, id string) *runtime.Sandbox {
	t.Helper()
	s, err := runtime.Adopt(t.Context(), b, id, b.spec, b.layout, b.log)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *harness) starts() (n int) {
	for _, call := range b.Calls() {
		if call == "Start" {
			n++
		}
	}
	return n
}

func TestASandboxIsAdoptedWhereverItsLifeIs(t *testing.T) {
	cases := []struct {
		name string
		away time.Duration // how long nobody is there; less than 0: it was never started
		took time.Duration // until its end
	}{
		{"not started yet", -1, 2 * time.Minute},
		{"just started", 0, 2 * time.Minute},
		{"in the middle", 90 * time.Second, 30 * time.Second},
		{"ended", time.Hour, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, talker)
				var id string
				if c.away < 0 {
					id = b.made(t)
				} else {
					id = b.begin(t)
				}
				began := time.Now()
				time.Sleep(max(c.away, 0))
				starts, again := b.starts(), time.Now()
				s := b.adopt(t, id)
				if s.ID() != id || !s.StartedAt().Equal(began) {
					t.Errorf("id %s, started at %v, want %v", s.ID(), s.StartedAt(), began)
				}
				end, err := s.Wait(t.Context())
				if err != nil || end.ExitCode != 7 || end.Cause != nil || end.Outside {
					t.Errorf("%+v, %v", end, err)
				}
				if took := time.Since(again); took != c.took {
					t.Errorf("its end came after %v", took)
				}
				slices.Sort(b.lines)
				if got := strings.Join(b.lines, ", "); got != "stderr: one, stderr: two, stdout: one, stdout: two" {
					t.Errorf("log: %s", got)
				}
				if c.away >= 0 && b.starts() != starts {
					t.Error("it was started again")
				}
				b.remove(t, s)
			})
		})
	}
}

func TestAnEndWhileASandboxIsAdoptedIsNotMissed(t *testing.T) {
	for _, method := range []string{"NextExit", "Inspect", "Logs"} {
		t.Run("before the call "+method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, sleeper)
				id := b.begin(t)
				b.Hook = func(ctx context.Context, called string) error {
					if called == method {
						b.Hook = nil
						return b.Kill(ctx, id)
					}
					return nil
				}
				s := b.adopt(t, id)
				began := time.Now()
				if end, err := s.Wait(t.Context()); err != nil || end.ExitCode != 137 || !end.Outside || time.Since(began) != 0 {
					t.Errorf("%+v, %v", end, err)
				}
				b.remove(t, s)
			})
		})
	}
}

func TestAnAdoptedSandboxSkipsWhatWasLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, talker)
		id := b.begin(t)
		b.log.Skip(1, 0)
		s := b.adopt(t, id)
		if _, err := s.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		slices.Sort(b.lines)
		if diff := cmp.Diff([]string{"stderr: one", "stderr: two", "stdout: two"}, b.lines); diff != "" {
			t.Error(diff)
		}
		b.remove(t, s)
	})
}

func TestAnAdoptedSandboxIsStoppedAsAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, polite)
		s := b.adopt(t, b.begin(t))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
		defer cancel()
		if end, err := s.Wait(ctx); err != nil || end.ExitCode != 3 || !errors.Is(end.Cause, errEnough) || end.Outside {
			t.Errorf("%+v, %v", end, err)
		}
		b.remove(t, s)
	})
}

func TestASandboxWhoseOutputIsNotKeptIsReadFromThereOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, talker)
		s := b.start(t, b)
		time.Sleep(time.Second)
		s.Release()
		var got []string
		b.log = runtime.NewLog(1<<20, func(l runtime.LogLine) { got = append(got, l.Stream+" "+l.Text) })
		s, err := runtime.Adopt(t.Context(), b, s.ID(), b.spec, b.layout, b.log)
		if err != nil {
			t.Fatal(err)
		}
		end, err := s.Wait(t.Context())
		slices.Sort(got)
		if diff := cmp.Diff([]string{"stderr two", "stdout two"}, got); diff != "" || err != nil || end.ExitCode != 7 {
			t.Errorf("%+v, %v: %s", end, err, diff)
		}
		b.remove(t, s)
	})
}

func TestASandboxThatCannotBeAdoptedIsLeftAsItIs(t *testing.T) {
	for _, method := range []string{"NextExit", "Inspect", "Start", "Logs"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, sleeper)
				id := b.made(t)
				b.breakWith(errAway, method)
				engine := &listening{harness: b}
				if s, err := runtime.Adopt(t.Context(), engine, id, b.spec, b.layout, b.log); s != nil || !errors.Is(err, errAway) {
					t.Errorf("%v, %v", s, err)
				}
				<-engine.until // the subscription has ended
				b.Hook = nil
				s := b.adopt(t, id)
				b.remove(t, s)
			})
		})
	}
	t.Run("it is gone", func(t *testing.T) {
		b := newBench(t, sleeper)
		if _, err := runtime.Adopt(t.Context(), b, strings.Repeat("0", 64), b.spec, b.layout, b.log); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	})
}
