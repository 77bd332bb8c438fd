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
				x.run.Durable, x.footprint.begun = true, true
				began := time.Now().Add(-c.ran)
				x.run.Record.StartedAt = &began
				if err := errors.Join(x.run.Enter(api.Starting, ""), x.run.Enter(api.Running, "")); err != nil {
					t.Fatal(err)
				}
				x.run.Limits.Timeout = limit
				b.breaks("Probe", errUnreachable)
				asked := time.Now()
				result, err := x.given(x.outage.outlast(t.Context(), unreachable{x}))
				if waited := time.Since(asked); err != nil || result.Outcome != api.TimedOut || waited < c.waits || waited > c.waits+5*time.Second {
					t.Errorf("%+v, %v after %v, want %v", result, err, waited, c.waits)
				}
			})
		})
	}
}

// unreachable is an attempt whose engine is away.
type unreachable struct{ *execution }

func (unreachable) runAttempt(context.Context) (run.Result, error) {
	return run.Result{}, errUnreachable
}

func TestAnEngineThatBreaksOffTheSameAgainAndAgainFailsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.breaks("Image", errUnreachable)
		x := b.execution()
		x.run.Durable = true
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
	t.Parallel()
	b := newBench(t)
	b.breaks("Image", errUnreachable)
	if _, err := b.execution().Attempt(t.Context()); !errors.Is(err, runtime.ErrUnreachable) || strings.Count(strings.Join(b.engine.Calls(), " "), "Image") != 1 {
		t.Errorf("%v: %v", err, b.engine.Calls())
	}
}

// The engine keeps no output of a command's run, so that what was written meanwhile is lost.
func TestACommandsRunOutlivesTheEnginesAbsenceWithAGapInItsLog(t *testing.T) {
	t.Parallel()
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
	x.run.LedBy(&heard, nil)
	result := make(chan run.Result, 1)
	go func() { result <- b.carriesOut(x) }()
	testkit.Eventually(t, "its first line is taken", func() bool {
		x.log.counting.Lock()
		defer x.log.counting.Unlock()
		return x.log.lines.Stdout == 1
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
	if len(x.run.Record.Warnings) != 1 || !strings.Contains(x.run.Record.Warnings[0], "may lack lines") {
		t.Errorf("warnings %q", x.run.Record.Warnings)
	}
}

// An engine that breaks off again and again is given up, unless a program went on between: of that an entry takes note.
func TestAnEntryKnowsWhetherItsProgramWentOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, proceed := b.leftUntil(reports(0, report(0, nil)))
	if x.outage.waits.IsZero() {
		t.Error("the program went on, and the entry doesn't know")
	}
	proceed()
	testkit.Eventually(t, "it ends", func() bool { return b.states() == "exited" })
	next := b.resumed(x)
	if _, err := next.Resume(t.Context()); err != nil || !next.outage.waits.IsZero() {
		t.Errorf("%v; the program had ended before the entry, which has waited for it since %v", err, next.outage.waits)
	}
	b.ends(next)
}
