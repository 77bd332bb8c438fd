package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// harness is a fake engine with the image of a spec, a layout and a log. Its tests run in
// a bubble of synctest: their clock is not the wall's, and all goroutines must have
// ended with them.
type harness struct {
	*enginetest.Fake
	layout runtime.Layout
	spec   runtime.Spec
	log    *runtime.Log
	lines  []string
}

func newBench(t *testing.T, program enginetest.Program) *harness {
	t.Helper()
	b := &harness{
		Fake: enginetest.NewFake(program),
		spec: runtime.Spec{
			Run: "r1", Root: "r1", Unit: "probe", Owner: "me", Network: "none",
			Image: runtime.Image{ID: "sha256:1", Cmd: []string{"probe"}}, Limits: runtime.DefaultLimits(),
		},
	}
	b.AddImage(b.spec.Image)
	b.log = runtime.NewLog(1<<20, func(l runtime.LogLine) { b.lines = append(b.lines, l.Stream+": "+l.Text) })
	initFile := filepath.Join(t.TempDir(), "init")
	if err := os.WriteFile(initFile, nil, 0o555); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.layout, err = runtime.NewLayout(t.TempDir(), initFile); err != nil {
		t.Fatal(err)
	}
	return b
}

// breakWith lets engine calls fail, by their names.
func (b *harness) breakWith(err error, methods ...string) {
	b.Hook = func(_ context.Context, method string) error {
		if slices.Contains(methods, method) {
			return err
		}
		return nil
	}
}

func (b *harness) start(t *testing.T, engine runtime.Containers) *runtime.Sandbox {
	t.Helper()
	s, err := runtime.Start(t.Context(), engine, b.spec, b.layout, b.log)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *harness) remove(t *testing.T, s *runtime.Sandbox) {
	t.Helper()
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	b.nothingLeft(t)
}

func (b *harness) nothingLeft(t *testing.T) {
	t.Helper()
	b.Hook = nil
	refs, err := b.ContainersByLabel(t.Context(), nil)
	if err != nil || len(refs) > 0 {
		t.Errorf("left behind: %v, %v", refs, err)
	}
}

// in returns where a path of the container lies on this machine.
func in(spec runtime.ContainerSpec, path string) string {
	for _, m := range slices.Backward(spec.Mounts) {
		if rest, ok := strings.CutPrefix(path, m.Target); ok {
			return m.Source + rest
		}
	}
	panic("not mounted: " + path)
}

// sleeper runs until it is killed.
func sleeper(ctx context.Context, _ runtime.ContainerSpec, _, _ io.Writer) int {
	<-ctx.Done()
	return 0
}

var errAway = fault.New(fault.Unavailable, "the engine is away")

func TestTheLifeOfASandbox(t *testing.T) {
	report := initreport.Report{Version: initreport.Version, ExitCode: 7, CPUSeconds: 1.5, Source: initreport.Cgroup2}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ context.Context, spec runtime.ContainerSpec, stdout, _ io.Writer) int {
			fmt.Fprint(stdout, "hello\nend without a newline")
			if err := os.WriteFile(in(spec, "/run/aod/report"), report.Append(nil), 0o600); err != nil {
				t.Error(err)
			}
			return 7
		})
		s := b.start(t, b)
		end, err := s.Wait(t.Context())
		if err != nil || end.ExitCode != 7 || end.Cause != nil || end.OOMKilled || end.StartedAt.IsZero() || end.FinishedAt.IsZero() {
			t.Errorf("end %+v, %v", end, err)
		}
		if !end.Reported || end.Report != report {
			t.Errorf("report %+v", end.Report)
		}
		if diff := cmp.Diff([]string{"stdout: hello", "stdout: end without a newline"}, b.lines); diff != "" {
			t.Error(diff)
		}
		b.remove(t, s)
		b.remove(t, s) // again isn't an error
		calls := b.Calls()[:6]
		slices.Sort(calls[1:3]) // at once
		if got := strings.Join(calls, " "); got != "Create Attach NextExit Start Inspect Remove" {
			t.Errorf("calls %s", got)
		}
	})
}

func TestRemoveEndsASandboxThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, sleeper)
		s := b.start(t, b)
		b.breakWith(errAway, "Remove")
		if err := s.Remove(t.Context()); !errors.Is(err, runtime.ErrLeftBehind) || !errors.Is(err, errAway) {
			t.Error(err)
		}
		b.Hook = nil
		over, cancel := context.WithTimeout(t.Context(), time.Second)
		cancel()
		if err := s.Remove(over); err != nil {
			t.Error(err)
		}
		b.nothingLeft(t)
	})
}

// listening is an engine that tells how long an exit is subscribed to.
type listening struct {
	*harness
	until <-chan struct{}
}

func (l *listening) NextExit(ctx context.Context, id string) (<-chan runtime.Exit, error) {
	l.until = ctx.Done()
	return l.harness.NextExit(ctx, id)
}

func TestTheSubscriptionLivesFromTheStartToTheRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, sleeper)
		engine := &listening{harness: b}
		ctx, cancel := context.WithCancel(t.Context())
		s, err := runtime.Start(ctx, engine, b.spec, b.layout, b.log)
		if err != nil {
			t.Fatal(err)
		}
		cancel() // it bounds the start alone
		synctest.Wait()
		select {
		case <-engine.until:
			t.Error("it ended with the start")
		default:
		}
		b.remove(t, s)
		<-engine.until
	})
}
