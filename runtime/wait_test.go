package runtime_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

var errEnough = errors.New("that is enough")

// polite ends when it is told to.
func polite(ctx context.Context, _ runtime.ContainerSpec, _, _ io.Writer) int {
	select {
	case <-enginetest.Terminated(ctx):
	case <-ctx.Done():
	}
	return 3
}

func TestWaitStopsASandboxWhoseTimeIsUp(t *testing.T) {
	cases := []struct {
		name    string
		program enginetest.Program
		broken  []string
		exit    int
		calls   string
		took    time.Duration
	}{
		{"a program that listens ends by itself", polite, nil, 3, "Stop Inspect", 0},
		{"one that doesn't is killed after its grace", sleeper, nil, 137, "Stop Inspect", 2 * time.Second},
		{"one that the engine can't stop is killed", polite, []string{"Stop"}, 137, "Stop Kill Inspect", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.program)
				s := b.start(t, b)
				b.breakWith(errAway, c.broken...)
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errEnough)
				defer cancel()
				began := time.Now()
				end, err := s.Wait(ctx)
				if err != nil || end.ExitCode != c.exit || !errors.Is(end.Cause, errEnough) {
					t.Errorf("end %+v, %v", end, err)
				}
				if took := time.Since(began) - 10*time.Second; took != c.took {
					t.Errorf("it took %v after the end of its time", took)
				}
				if calls := strings.Join(b.Calls()[5:], " "); calls != c.calls { // behind those of the start, and one for its processes
					t.Errorf("calls %s", calls)
				}
				b.remove(t, s)
			})
		})
	}
}

func TestWaitTellsOfAnEngineThatFails(t *testing.T) {
	cases := []struct {
		name   string
		broken []string
		exits  func() <-chan runtime.Exit // nil: the fake's
		within time.Duration
	}{
		{name: "an exit that it can't tell", exits: func() <-chan runtime.Exit { return exited(runtime.Exit{Err: errAway}) }},
		{name: "a state that it can't tell", broken: []string{"Inspect"}, exits: func() <-chan runtime.Exit { return exited(runtime.Exit{}) }},
		{name: "neither stop nor kill", broken: []string{"Stop", "Kill"}, within: time.Second},
		{name: "no word after the kill", exits: func() <-chan runtime.Exit { return nil }, within: 31 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, polite)
				s := b.start(t, stubborn{b, c.exits, nil})
				b.breakWith(errAway, c.broken...)
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnough)
				defer cancel()
				began := time.Now()
				if end, err := s.Wait(ctx); !fault.Is(err, fault.Unavailable) {
					t.Errorf("%+v, %v", end, err)
				}
				if took := time.Since(began); took != c.within {
					t.Errorf("it took %v", took)
				}
				b.Hook = nil
				b.remove(t, s)
			})
		})
	}
}

func exited(exit runtime.Exit) <-chan runtime.Exit {
	exits := make(chan runtime.Exit, 1)
	exits <- exit
	return exits
}

// stubborn is an engine that has its own mind about exits and the ends of streams.
type stubborn struct {
	*harness
	exits   func() <-chan runtime.Exit
	streams *runtime.Streams
}

func (s stubborn) NextExit(ctx context.Context, id string) (<-chan runtime.Exit, error) {
	if s.exits == nil {
		return s.harness.NextExit(ctx, id)
	}
	return s.exits(), nil
}

func (s stubborn) Attach(ctx context.Context, id string) (*runtime.Streams, error) {
	if s.streams == nil {
		return s.harness.Attach(ctx, id)
	}
	return s.streams, nil
}

func TestStreamsThatNeverEndDoNotHoldTheSandboxUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		stdout, w := io.Pipe()
		s := b.start(t, stubborn{b, nil, &runtime.Streams{Stdout: stdout, Stderr: strings.NewReader("said\n"), Close: w.Close}})
		began := time.Now()
		end, err := s.Wait(t.Context())
		if err != nil || end.ExitCode != 0 || end.Cause != nil {
			t.Errorf("end %+v, %v", end, err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		b.remove(t, s)
		if len(b.lines) != 1 || b.lines[0] != "stderr: said" {
			t.Errorf("lines %q", b.lines)
		}
	})
}

func TestAnExitForMemoryIsSeen(t *testing.T) {
	b := newBench(t, func(context.Context, runtime.ContainerSpec, io.Writer, io.Writer) int { return enginetest.OOMKilled })
	s := b.start(t, b)
	if end, err := s.Wait(t.Context()); err != nil || !end.OOMKilled || end.ExitCode != 137 || end.Reported {
		t.Errorf("%+v, %v", end, err)
	}
	b.remove(t, s)
}

func TestTheDiskLimitEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(ctx context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
			if err := os.WriteFile(in(spec, "/workspace/x"), make([]byte, 2<<20), 0o600); err != nil {
				t.Error(err)
			}
			return polite(ctx, spec, nil, nil)
		})
		b.spec.Limits.DiskBytes = 1 << 20
		s := b.start(t, b)
		began := time.Now()
		end, err := s.Wait(t.Context())
		var over *runtime.LimitError
		if err != nil || !errors.As(end.Cause, &over) || over.Limit != "output" || !strings.Contains(over.Message, "more than 1048576 bytes") {
			t.Errorf("end %+v, %v", end, err)
		}
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		b.remove(t, s)
	})
}
