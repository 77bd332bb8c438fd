package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestAnAttemptIsResumed(t *testing.T) {
	t.Parallel()
	t.Run("with its container, which is not started again", func(t *testing.T) {
		b := newBench(t)
		x := b.left()
		next := b.resumed(x)
		result, err := next.Resume(t.Context())
		if err != nil || result.Outcome != api.Success || strings.Count(b.calls(), "Start") != 1 || strings.Count(b.calls(), "Create") != 1 {
			t.Errorf("%+v, %v: %s", result, err, b.calls())
		}
		next.Settle(t.Context())
		if err := next.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		b.nothingLeft()
	})
	t.Run("but not without it", func(t *testing.T) {
		b := newBench(t)
		x := b.left()
		if err := runtime.RemoveAll(t.Context(), b.engine, "r1", "me"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.resumed(x).Resume(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "vanished") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("when the engine is there again", func(t *testing.T) {
		b := newBench(t)
		x := b.left()
		b.breaks("Probe", errAway)
		next := b.resumed(x)
		done := make(chan error, 1)
		go func() {
			_, err := next.Resume(t.Context())
			done <- err
		}()
		testkit.Eventually(t, "the engine is asked again", func() bool { return strings.Count(b.calls(), "Probe") >= 2 })
		b.breaks("Probe", nil)
		if err := <-done; err != nil {
			t.Error(err)
		}
		next.Settle(t.Context())
		if err := next.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		b.nothingLeft()
	})
}

// A program's good end is stored before all of its output has come.
func TestLogLinesThatCameAfterTheOutcomeAreReadByTheNextProcess(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]bool{"of a container that has ended": false, "of one that goes on": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ended := make(chan struct{})
			defer close(ended)
			b.engine.Program = enginetest.WithInit(func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
				fmt.Fprintln(stdout, "first")
				fmt.Fprintln(stderr, "last")
				succeed(ctx, spec, stdout, stderr)
				if !share {
					return 0
				}
				fmt.Fprintln(stdout, capsuleapi.EndLine("r1"))
				fmt.Fprintln(stderr, capsuleapi.EndLine("r1"))
				select {
				case <-ended:
				case <-ctx.Done():
				}
				return 0
			})
			x := b.execution()
			x.run.Durable = true
			ctx, detach := context.WithCancelCause(t.Context())
			defer detach(nil)
			if share {
				x.run.LedBy(leaving{detach: detach}, nil)
			}
			if _, err := x.Attempt(ctx); err != nil && !share {
				t.Fatal(err)
			}
			x.Release()
			if share {
				x.saved.Slot.Number = 1
			}
			next, well := b.resumed(x), 0
			next.run.Record.ExitCode = &well
			var heard hearing
			next.run.LedBy(&heard, nil)
			next.Settle(t.Context())
			slices.Sort(heard.lines)
			if want := []string{"first", "last"}; !slices.Equal(heard.lines, want) || next.run.Record.Log.Bytes == 0 {
				t.Errorf("the next process kept %q, %+v", heard.lines, next.run.Record.Log)
			}
			if err := next.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			b.nothingLeft()
		})
	}
}

// hearing is a host that keeps the log lines of a run.
type hearing struct {
	alone
	lines []string
}

func (h *hearing) Note(event run.Event) {
	if event.Log != nil {
		h.lines = append(h.lines, event.Log.Text)
	}
}

// leftUntil is a run that goes on without its process. Its program waits until go is called.
func (b *harness) leftUntil(program enginetest.Program) (x *execution, proceed func()) {
	b.t.Helper()
	gate := make(chan struct{})
	b.engine.Program = func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		fmt.Fprintln(stdout, "before")
		select {
		case <-ctx.Done():
			return 137
		case <-gate:
		}
		fmt.Fprintln(stdout, "after")
		return program(ctx, spec, stdout, stderr)
	}
	x = b.execution()
	x.run.Durable = true
	ctx, detach := context.WithCancelCause(b.t.Context())
	x.run.LedBy(leaving{detach: detach}, nil)
	if _, err := x.Attempt(ctx); !errors.Is(err, runtime.ErrDetach) {
		b.t.Fatalf("its process ended with %v", err)
	}
	x.Release()
	return x, sync.OnceFunc(func() { close(gate) })
}

func TestAContainerThatEndedWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		program enginetest.Program
		outcome api.Outcome
		exit    int
	}{
		{"well", reports(0, report(0, nil)), api.Success, 0},
		{"by itself", reports(3, report(3, nil)), api.CapsuleError, 3},
		{"without memory", reports(enginetest.OOMKilled, nil), api.OutOfMemory, 137},
		{"because somebody killed it", reports(137, nil), api.SystemError, 137},
		{"without a result", enginetest.WithInit(leaves(0, func(string) {})), api.ContractViolation, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			x, proceed := b.leftUntil(c.program)
			proceed()
			testkit.Eventually(t, "it ends", func() bool { return b.states() == "exited" })
			next := b.resumed(x)
			got, err := next.Resume(t.Context())
			if err != nil || got.Outcome != c.outcome || *got.ExitCode != c.exit {
				t.Errorf("%+v, %v", got, err)
			}
			if n := strings.Count(b.calls(), "Start"); n != 1 {
				t.Errorf("it was started %d times", n)
			}
			b.ends(next)
		})
	}
}

func TestAContainerThatRanOverItsTimeWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, _ := b.leftUntil(succeed)
	long := x.run.Record.StartedAt.Add(-x.run.Limits.Timeout)
	x.run.Record.StartedAt = &long
	next := b.resumed(x)
	began := time.Now()
	got, err := next.Resume(t.Context())
	if err != nil || got.Outcome != api.TimedOut || time.Since(began) > x.run.Limits.Timeout {
		t.Errorf("%+v, %v after %v", got, err, time.Since(began))
	}
	b.ends(next)
}

func TestARunThatWasCancelledWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, _ := b.leftUntil(succeed)
	next := b.resumed(x)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("because"))
	_, err := next.Resume(ctx)
	if got := run.Fault(ctx, err); err == nil || got.Outcome != api.WasCancelled || !strings.Contains(got.Failure.Message, "because") {
		t.Errorf("%+v, %v", got, err)
	}
	b.ends(next)
}

func TestAProcessThatDiesBeforeItsContainerStarts(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Attach", "Start"} {
		t.Run("asking for "+method, func(t *testing.T) {
			b := newBench(t)
			x := b.execution()
			x.run.Durable = true
			ctx, detach := context.WithCancelCause(t.Context())
			b.at(method, func() { detach(runtime.ErrDetach) })
			b.breaks("Start", errAway) // its answer is lost with the process
			if _, err := x.Attempt(ctx); !errors.Is(err, runtime.ErrDetach) || x.run.State() != api.Starting || b.states() != "created" {
				t.Fatalf("%v, it is %s with %q", err, x.run.State(), b.states())
			}
			x.Release()
			b.breaks("Start", nil)
			next := b.resumed(x)
			got, err := next.Resume(t.Context())
			if err != nil || got.Outcome != api.Success || next.run.Record.Container == nil || next.run.State() != api.Running {
				t.Errorf("%+v, %v, it is %s", got, err, next.run.State())
			}
			if n := strings.Count(b.calls(), "Create"); n != 1 {
				t.Errorf("%d containers were made", n)
			}
			b.ends(next)
		})
	}
	t.Run("asking for Create, of which nothing came", func(t *testing.T) {
		b := newBench(t)
		x := b.execution()
		x.run.Durable = true
		if err := errors.Join(x.run.Enter(api.Starting, ""), os.Mkdir(x.run.AttemptDir(), 0o700), os.WriteFile(filepath.Join(x.run.AttemptDir(), "half"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		next := b.resumed(x)
		if got, err := next.Resume(t.Context()); err != nil || got.Outcome != api.Success || next.run.State() != api.Running {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := os.Stat(filepath.Join(next.run.AttemptDir(), "half")); err == nil {
			t.Error("what the dead process had begun is still there")
		}
		b.ends(next)
	})
}

func TestAnEngineThatFailsWhileARunIsResumed(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"ContainersByLabel", "NextExit", "Inspect", "Logs", "Image"} {
		t.Run(method, func(t *testing.T) {
			b := newBench(t)
			x, proceed := b.leftUntil(reports(0, report(0, nil)))
			next := b.resumed(x)
			b.breaks(method, errAway)
			if _, err := next.Resume(t.Context()); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			b.breaks(method, nil)
			if conn, err := net.Dial("unix", filepath.Join(next.run.AttemptDir(), "aod", "aod.sock")); err == nil {
				conn.Close()
				t.Error("its capsule API is still served")
			}
			if got := b.states(); got != "running" {
				t.Errorf("its container is %q", got)
			}
			b.again(next)
			proceed()
			if got, err := next.Attempt(t.Context()); err != nil || got.Outcome != api.Success {
				t.Errorf("%+v, %v", got, err)
			}
			if got := b.states(); strings.Contains(got, " ") {
				t.Errorf("beside the second attempt's container is that of the first: %s", got)
			}
			b.ends(next)
		})
	}
}

// lines are the texts of a run's log.
type lines struct {
	mu   sync.Mutex
	seen []string
}

func (l *lines) observe(e run.Event) {
	if e.Log != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.seen = append(l.seen, e.Log.Text)
	}
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// kept is the host of a run of whose log an earlier process kept so much.
type kept struct {
	alone
	lines run.Lines
}

func (k kept) Logged() run.Lines { return k.lines }

func TestTheLogOfAnAdoptedContainerGoesOn(t *testing.T) {
	t.Parallel()
	for want, had := range map[string]run.Lines{"before after": {}, "after": {Stdout: 1}, "": {Stdout: 2}} {
		b := newBench(t)
		x, proceed := b.leftUntil(reports(3, report(3, nil)))
		next := b.resumed(x)
		var log lines
		next.run.LedBy(kept{lines: had}, log.observe)
		proceed()
		if _, err := next.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(log.all(), " "); got != want {
			t.Errorf("after %d lines come %q, want %q", had.Stdout, got, want)
		}
		b.ends(next)
	}
}

// A creation may be under way when its process dies. Its container turns up when the next one
// makes its own.
func TestAContainerWhoseNameIsTakenIsAdopted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.execution()
	x.run.Durable = true
	if err := x.run.Enter(api.Starting, ""); err != nil {
		t.Fatal(err)
	}
	next := b.resumed(x)
	b.engine.Program = reports(0, nil)
	b.at("Create", func() {
		must(os.WriteFile(filepath.Join(next.run.AttemptDir(), "report"), nil, 0o600))
		_, err := b.engine.Create(t.Context(), runtime.ContainerSpec{
			Name: "aod-r1", Image: "debian", LogBytes: 100,
			Labels: map[string]string{runtime.LabelRun: "r1", runtime.LabelOwner: "me", runtime.LabelAttempt: "1"},
			Mounts: []runtime.Mount{
				{Source: filepath.Join(next.run.AttemptDir(), "io"), Target: "/io"},
				{Source: filepath.Join(next.run.AttemptDir(), "report"), Target: initreport.Path},
			},
		})
		must(err)
	})
	got, err := next.Resume(t.Context())
	if err != nil || got.Outcome != api.Success || strings.Count(b.calls(), "Start") != 1 {
		t.Errorf("%+v, %v: %s", got, err, b.calls())
	}
	b.ends(next)
}

// Another run, or another home on the same engine, may have containers that look alike.
func TestOnlyTheRunsOwnContainersAreAdopted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]map[string]string{
		"of another home":  {runtime.LabelOwner: "you"},
		"of another run":   {runtime.LabelRun: "r2"},
		"that gives files": {runtime.LabelPurpose: "files"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			labels := map[string]string{runtime.LabelRun: "r1", runtime.LabelOwner: "me", runtime.LabelAttempt: "1"}
			for label, value := range change {
				labels[label] = value
			}
			id, err := b.engine.Create(t.Context(), runtime.ContainerSpec{Name: "foreign", Image: "debian", Labels: labels})
			if err != nil {
				t.Fatal(err)
			}
			x := b.execution()
			x.run.Durable = true
			if err := x.run.Enter(api.Starting, ""); err != nil {
				t.Fatal(err)
			}
			next := b.resumed(x)
			if got, err := next.Resume(t.Context()); err != nil || got.Outcome != api.Success || next.run.Record.Container.ID == id {
				t.Errorf("%+v, %v", got, err)
			}
			next.Settle(t.Context())
			if err := next.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			_, there := b.engine.Spec(id)
			if ours := change[runtime.LabelPurpose] != ""; there == ours {
				t.Errorf("it is still there: %v", there)
			}
		})
	}
}
