package container

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/unit"
)

// bench carries out runs of one capsule on a fake engine, without a loop around them.
type bench struct {
	t      *testing.T
	engine *enginetest.Fake
	kind   *Containers
	unit   *unit.Unit
	home   run.Home

	mu     sync.Mutex
	broken map[string]error // by the engine's method
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, broken: map[string]error{}}
	b.engine = enginetest.NewFake(enginetest.WithInit(succeed))
	b.engine.AddImage(runtime.Image{ID: "sha256:debian", Tags: []string{"debian"}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64"})
	b.engine.Hook = func(_ context.Context, method string) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.broken[method]
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"Dockerfile": "FROM debian\nCMD [\"worker\"]\n", "tools.yaml": "[]\n", "agent.yaml": "name: worker\nlimits: {timeout: 20s}\n",
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object", "properties": {"n": {"type": "int"}}}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	b.unit = unit.Of(c)
	data := t.TempDir()
	b.home = run.Home{Dir: data, Runs: filepath.Join(data, "runs"), Owner: "me", Bin: filepath.Join(data, "bin"), Cards: filepath.Join(data, "cards")}
	for _, dir := range []string{b.home.Runs, b.home.Bin} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.restart()
	return b
}

// succeed leaves a result.
func succeed(_ context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
	for _, m := range spec.Mounts {
		if m.Target == "/io" {
			_ = os.WriteFile(filepath.Join(m.Source, "output.json"), []byte(`{"n":1}`), 0o600)
		}
	}
	return 0
}

// restart opens the kind as the next process does.
func (b *bench) restart() {
	b.t.Helper()
	b.kind = New(b.engine, Options{})
	if err := b.kind.Open(b.home); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = b.kind.Close() }) // it ends a context
}

func (b *bench) breaks(method string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken[method] = err
}

// execution makes the attempts of a new run, of which the first is to begin.
func (b *bench) execution() *execution {
	b.t.Helper()
	input, err := contract.Decode([]byte(`{}`), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	r := run.New("r1", run.Request{Unit: b.unit, Input: input}, run.Input{Payload: input}, runtime.DefaultLimits())
	r.Dir, r.Attempt = filepath.Join(b.home.Runs, "r1"), 1
	if err := os.MkdirAll(r.InputDir(), 0o700); err != nil {
		b.t.Fatal(err)
	}
	r.LedBy(alone{}, nil)
	return b.kind.Execution(r).(*execution)
}

// resumed makes the attempts of a run that another process left.
func (b *bench) resumed(left *execution) *execution {
	b.t.Helper()
	b.restart()
	r := &run.Run{
		ID: left.ID, Unit: left.Unit, Input: left.Input, Lineage: left.Lineage, Limits: left.Limits,
		Record: left.Record, Attempt: left.Run.Attempt, Dir: left.Dir, Durable: true,
	}
	r.LedBy(alone{}, nil)
	return b.kind.Execution(r).(*execution)
}

// again is what the loop does between two attempts.
func (b *bench) again(x *execution) {
	b.t.Helper()
	x.Discard(b.t.Context())
	x.Record.Attempts = append(x.Record.Attempts, api.Attempt{Number: x.Run.Attempt})
	if err := x.Enter(api.Failed, ""); err != nil {
		b.t.Fatal(err)
	}
	x.Run.Attempt++
}

// calls returns what the engine was asked for, but for what it has of images.
func (b *bench) calls() string {
	calls := slices.DeleteFunc(b.engine.Calls(), func(s string) bool { return s == "Image" || s == "Build" })
	return strings.Replace(strings.Join(calls, " "), "NextExit Attach", "Attach NextExit", 1) // they are asked for side by side
}

func (b *bench) nothingLeft() {
	b.t.Helper()
	refs, err := b.engine.ContainersByLabel(b.t.Context(), map[string]string{runtime.LabelRun: ""})
	if err != nil || len(refs) > 0 {
		b.t.Errorf("containers left: %v %v", refs, err)
	}
}

// alone is the host of a run without a loop.
type alone struct{ run.Host }

func (alone) Save(api.Transition) error { return nil }
func (alone) Note(run.Event)            {}
func (alone) Calls() run.ChildRuns      { return noCalls{} }
func (alone) Logged() run.Lines         { return run.Lines{} }
func (alone) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// leaving is the host of a run whose process ends when its program runs.
type leaving struct {
	alone
	detach context.CancelCauseFunc
}

func (l leaving) Save(transition api.Transition) error {
	if transition.State == api.Running {
		l.detach(runtime.ErrDetach)
	}
	return nil
}

// noCalls are the child runs of a run that calls nobody.
type noCalls struct{ run.ChildRuns }

func (noCalls) Keys() []string  { return nil }
func (noCalls) CancelAll(error) {}
func (noCalls) End(error)       {}

var errAway = fault.New(fault.Unavailable, "the engine is away")

func TestAnAttemptTakesItsResult(t *testing.T) {
	b := newBench(t)
	x := b.execution()
	result, err := x.Attempt(t.Context())
	if err != nil || result.Outcome != api.Success || string(result.Output) != `{"n":1}` || x.attempt.origin != fresh {
		t.Fatalf("%+v, %v", result, err)
	}
	if x.State() != api.Running || x.Record.Container.ID == "" || x.Record.StartedAt == nil || x.Record.Image.ID == "" {
		t.Errorf("record %+v", x.Record)
	}
	x.Settle(t.Context())
	if err := x.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.calls(); !strings.Contains(got, "Create Attach NextExit Start") || strings.Contains(got, "ContainersByLabel") || strings.Count(got, "Remove") != 1 {
		t.Errorf("the engine was asked for %s", got)
	}
	b.nothingLeft()
}

func TestAnEngineThatHasNothingIsAskedToRemoveNothing(t *testing.T) {
	for _, c := range []struct {
		name, method string
		err          error
	}{
		{"when the image can't be built", "Build", fault.New(fault.Build, "no")},
		{"when the image can't be looked up", "Image", errAway},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.breaks(c.method, c.err)
			x := b.execution()
			if _, err := x.Attempt(t.Context()); fault.KindOf(err) != fault.KindOf(c.err) {
				t.Errorf("error %v", err)
			}
			x.Settle(t.Context())
			if err := x.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			if got := b.calls(); got != "" {
				t.Errorf("the engine was asked for %s", got)
			}
		})
	}
}

func TestWhatIsUncertainIsLookedForByItsLabels(t *testing.T) {
	for _, method := range []string{"Create", "Attach", "Start"} {
		t.Run(method, func(t *testing.T) {
			b := newBench(t)
			b.breaks(method, errAway)
			x := b.execution()
			if _, err := x.Attempt(t.Context()); !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			b.breaks(method, nil)
			late := b.late("1")
			if err := x.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			if _, there := b.engine.Spec(late); there {
				t.Error("what came late is left")
			}
			b.nothingLeft()
		})
	}
}

// late makes a container of an attempt whose creation was never answered.
func (b *bench) late(attempt string) (id string) {
	b.t.Helper()
	labels := map[string]string{runtime.LabelRun: "r1", runtime.LabelOwner: "me", runtime.LabelAttempt: attempt}
	id, err := b.engine.Create(b.t.Context(), runtime.ContainerSpec{Name: "late" + attempt, Image: "sha256:debian", Labels: labels})
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func TestARemovalThatFailsIsDoneAgain(t *testing.T) {
	b := newBench(t)
	x := b.execution()
	b.breaks("Remove", errAway) // before: it may be removed ahead
	if _, err := x.Attempt(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.Settle(t.Context())
	for range 2 {
		if err := x.Remove(t.Context()); err == nil {
			t.Error("it says that nothing is left")
		}
	}
	b.breaks("Remove", nil)
	if err := x.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	b.nothingLeft()
}

func TestTheNextAttemptRemovesWhatTheLastOneLeft(t *testing.T) {
	b := newBench(t)
	b.breaks("Create", errAway)
	x := b.execution()
	if _, err := x.Attempt(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("error %v", err)
	}
	b.breaks("Create", nil)
	late := b.late("1")
	b.again(x)
	result, err := x.Attempt(t.Context())
	if err != nil || result.Outcome != api.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	if _, there := b.engine.Spec(late); there {
		t.Error("the container of the first attempt is left beside that of the second")
	}
	x.Settle(t.Context())
	if err := x.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	b.nothingLeft()
}

func TestAnAttemptIsResumed(t *testing.T) {
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
		for deadline := time.Now().Add(10 * time.Second); strings.Count(b.calls(), "Probe") < 2; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the engine isn't asked again")
			}
		}
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

// left is a run that goes on without its process.
func (b *bench) left() *execution {
	b.t.Helper()
	x := b.execution()
	ctx, detach := context.WithCancelCause(b.t.Context())
	b.engine.Program = enginetest.WithInit(func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		select {
		case <-ctx.Done():
			return 137
		case <-time.After(200 * time.Millisecond): // it outlives its first process
			return succeed(ctx, spec, stdout, stderr)
		}
	})
	x.Durable = true
	x.LedBy(leaving{detach: detach}, nil)
	if _, err := x.Attempt(ctx); err == nil {
		b.t.Fatal("it ended before its process let it go")
	}
	if x.State() != api.Running {
		b.t.Fatalf("it is %s", x.State())
	}
	x.Release()
	return x
}

func TestAnEndSaysHowMuchHasEnded(t *testing.T) {
	for _, c := range []struct {
		end  runtime.End
		want ending
	}{
		{runtime.End{}, exited}, {runtime.End{ExitCode: 3}, exited}, {runtime.End{Early: true}, reported}, {runtime.End{Early: true, Reusable: true}, posted},
	} {
		if got := endingOf(c.end); got != c.want {
			t.Errorf("%+v: %v, want %v", c.end, got, c.want)
		}
	}
}
