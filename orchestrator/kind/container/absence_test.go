package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

var errUnreachable = fault.Wrap(fault.Unavailable, runtime.ErrUnreachable, "the engine is away")

func TestARunWaitsForTheEngineNoLongerThanItsTime(t *testing.T) {
	const limit = 100 * time.Second
	for name, c := range map[string]struct{ ran, waits time.Duration }{
		"to its end":                    {0, limit},
		"a while where it is out of it": {time.Hour, enginePatience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				x := b.execution()
				x.Durable, x.begun = true, true
				began := time.Now().Add(-c.ran)
				x.Record.StartedAt = &began
				if err := errors.Join(x.Enter(api.Starting, ""), x.Enter(api.Running, "")); err != nil {
					t.Fatal(err)
				}
				x.Limits.Timeout = limit
				b.breaks("Probe", errUnreachable)
				asked := time.Now()
				result, err := x.outlast(t.Context(), func(context.Context) (run.Result, error) { return run.Result{}, errUnreachable })
				if waited := time.Since(asked); err != nil || result.Outcome != api.TimedOut || waited < c.waits || waited > c.waits+5*time.Second {
					t.Errorf("%+v, %v after %v, want %v", result, err, waited, c.waits)
				}
			})
		})
	}
}

func TestAnEngineThatBreaksOffTheSameAgainAndAgainFailsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.breaks("Image", errUnreachable)
		x := b.execution()
		x.Durable = true
		if _, err := x.Attempt(t.Context()); !errors.Is(err, runtime.ErrUnreachable) {
			t.Error(err)
		}
		n := 0
		for _, call := range b.engine.Calls() {
			if call == "Image" {
				n++
			}
		}
		if n != entries {
			t.Errorf("it was entered %d times", n)
		}
	})
}

func TestACommandWithoutAnEngineSaysSoAtOnce(t *testing.T) {
	b := newBench(t)
	b.breaks("Image", errUnreachable)
	if _, err := b.execution().Attempt(t.Context()); !errors.Is(err, runtime.ErrUnreachable) || strings.Count(strings.Join(b.engine.Calls(), " "), "Image") != 1 {
		t.Errorf("%v: %v", err, b.engine.Calls())
	}
}

// The engine keeps no output of a command's run, so that what was written meanwhile is lost.
func TestACommandsRunOutlivesTheEnginesAbsenceWithAGapInItsLog(t *testing.T) {
	b := newBench(t)
	gate, again := make(chan struct{}), make(chan struct{})
	b.runs(func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		fmt.Fprintln(stdout, "before")
		<-gate
		fmt.Fprintln(stdout, "meanwhile")
		<-again
		fmt.Fprintln(stdout, "after")
		return succeed(ctx, spec, stdout, stderr)
	})
	x := b.execution()
	var heard hearing
	x.LedBy(&heard, nil)
	result := make(chan run.Result, 1)
	go func() { result <- b.carriesOut(x) }()
	testkit.Eventually(t, "its first line is taken", func() bool {
		x.counting.Lock()
		defer x.counting.Unlock()
		return x.lines.Stdout == 1
	})
	b.breaks("Probe", errUnreachable)
	testkit.Eventually(t, "it is cut off", func() bool {
		b.engine.Cut(errUnreachable)
		return strings.Contains(b.calls(), "Probe")
	})
	close(gate)
	b.breaks("Probe", nil)
	testkit.Eventually(t, "it is read again", func() bool { return strings.Count(b.calls(), "Attach") == 2 })
	close(again)
	if got := <-result; got.Outcome != api.Success || strings.Count(b.calls(), "Start") != 1 {
		t.Errorf("%+v: %s", got, b.calls())
	}
	if diff := cmp.Diff([]string{"before", "after"}, heard.lines); diff != "" {
		t.Error(diff)
	}
	if len(x.Record.Warnings) != 1 || !strings.Contains(x.Record.Warnings[0], "may lack lines") {
		t.Errorf("warnings %q", x.Record.Warnings)
	}
}
