package container

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// harness carries out runs of one capsule on a fake engine, without a loop around them.
type harness struct {
	t      *testing.T
	engine *enginetest.Fake
	over   Engine // what the kind has of it
	opts   Options
	kind   *Containers
	unit   *unit.Unit
	home   run.Home

	mu     sync.Mutex
	broken map[string]error  // by the engine's method
	before map[string]func() // by the engine's method: is called once, when the engine is asked
}

// worker are the files of the unit, those of a capsule.
var worker = map[string]string{
	"Dockerfile": "FROM debian\nCMD [\"worker\"]\n", "tools.yaml": "[]\n", "agent.yaml": "name: worker\nlimits: {timeout: 20s}\n",
	"schema.json": `{"input": {"type": "object"}, "output": {"type": "object", "properties": {
	  "n": {"type": "int"}, "file": {"type": "string", "format": "file_path"}}}}`,
}

// newBench is a bench for "worker", with other files in the place of some of its own.
func newBench(t *testing.T, other ...map[string]string) *harness {
	t.Helper()
	b := &harness{t: t, broken: map[string]error{}, before: map[string]func(){}}
	b.engine = enginetest.NewFake(enginetest.WithInit(succeed))
	b.over = b.engine
	b.engine.AddImage(runtime.Image{ID: "sha256:debian", Tags: []string{"debian"}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64"})
	b.engine.Hook = func(_ context.Context, method string) error {
		b.mu.Lock()
		first, err := b.before[method], b.broken[method]
		delete(b.before, method)
		b.mu.Unlock()
		if first != nil {
			first()
		}
		return err
	}
	files := maps.Clone(worker)
	for _, each := range other {
		maps.Copy(files, each)
	}
	b.unit = load(t, files)
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

// load reads a unit of these files; those without content are left out.
func load(t *testing.T, files map[string]string) *unit.Unit {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return unit.Of(c)
}

// runs sets the program of the containers that start from now on.
func (b *harness) runs(program enginetest.Program) { b.engine.Program = enginetest.WithInit(program) }

// mounted is the directory that a container has at a path.
func mounted(spec runtime.ContainerSpec, target string) string {
	for _, m := range spec.Mounts {
		if m.Target == target {
			return m.Source
		}
	}
	return ""
}

// leaves is a program that does something to its /io and ends.
func leaves(exit int, do func(io string)) enginetest.Program {
	return func(_ context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
		do(mounted(spec, "/io"))
		return exit
	}
}

// succeed leaves a result.
func succeed(_ context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
	_ = os.WriteFile(filepath.Join(mounted(spec, "/io"), "output.json"), []byte(`{"n":1}`), 0o600)
	return 0
}

// restart opens the kind as the next process does.
func (b *harness) restart() {
	b.t.Helper()
	b.kind = New(b.over, b.opts)
	if err := b.kind.Open(b.home); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = b.kind.Close() }) // it ends a context
}

func (b *harness) breaks(method string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken[method] = err
}

// at has something done when the engine is asked for a method the next time.
func (b *harness) at(method string, do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before[method] = do
}

// execution makes the attempts of a new run, of which the first is to begin.
func (b *harness) execution() *execution {
	b.t.Helper()
	return b.executionOf("r1", `{}`)
}

func (b *harness) executionOf(id, given string) *execution {
	b.t.Helper()
	input, err := contract.Decode([]byte(given), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	r := run.New(id, run.Request{Unit: b.unit, Input: input}, run.Input{Payload: input}, runtime.DefaultLimits())
	r.Dir, r.Attempt = filepath.Join(b.home.Runs, id), 1
	if err := errors.Join(os.RemoveAll(r.Dir), os.MkdirAll(r.InputDir(), 0o700)); err != nil {
		b.t.Fatal(err)
	}
	r.LedBy(alone{}, nil)
	return b.kind.Execution(r).(*execution)
}

// resumed makes the attempts of a run that another process left.
func (b *harness) resumed(left *execution) *execution {
	b.t.Helper()
	b.restart()
	stored, err := json.Marshal(left.run.Saved)
	if err != nil {
		b.t.Fatal(err)
	}
	r := &run.Run{
		ID: left.run.ID, Unit: left.run.Unit, Input: left.run.Input, Lineage: left.run.Lineage, Limits: left.run.Limits,
		Record: left.run.Record, Attempt: left.run.Attempt, Dir: left.run.Dir, Durable: true, Saved: json.RawMessage(stored),
	}
	r.LedBy(alone{}, nil)
	return b.kind.Execution(r).(*execution)
}

// again is what the loop does between two attempts.
func (b *harness) again(x *execution) {
	b.t.Helper()
	x.Discard(b.t.Context())
	x.run.Record.Attempts = append(x.run.Record.Attempts, api.Attempt{Number: x.run.Attempt})
	if err := x.run.Enter(api.Failed, ""); err != nil {
		b.t.Fatal(err)
	}
	x.run.Attempt++
}

// calls returns what the engine was asked for, but for what it has of images.
func (b *harness) calls() string {
	calls := slices.DeleteFunc(b.engine.Calls(), func(s string) bool { return s == "Image" || s == "Build" })
	return strings.Replace(strings.Join(calls, " "), "NextExit Attach", "Attach NextExit", 1) // they are asked for side by side
}

// carriesOut makes one attempt and ends the run. The container must be gone then.
func (b *harness) carriesOut(x *execution) run.Result {
	b.t.Helper()
	result, err := x.Attempt(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.ends(x)
	return result
}

// ends does what the loop does with a run that has its outcome.
func (b *harness) ends(x *execution) {
	b.t.Helper()
	x.Settle(b.t.Context())
	if err := x.Remove(b.t.Context()); err != nil {
		b.t.Error(err)
	}
	b.nothingLeft()
}

func (b *harness) nothingLeft() {
	b.t.Helper()
	refs, err := b.engine.ContainersByLabel(b.t.Context(), map[string]string{runtime.LabelRun: ""})
	if err != nil || len(refs) > 0 {
		b.t.Errorf("containers left: %v %v", refs, err)
	}
}

// alone is the host of a run without a loop.
type alone struct{ run.Host }

func (alone) Save(api.Transition) error                    { return nil }
func (alone) Note(run.Event)                               {}
func (alone) Calls() run.ChildRuns                         { return noCalls{} }
func (alone) Logged() run.Lines                            { return run.Lines{} }
func (alone) Aside(ctx context.Context, wait func()) error { return inPlace(ctx, wait) }
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

func (noCalls) Keys() []string             { return nil }
func (noCalls) Mounts() []capsuleapi.Mount { return nil }
func (noCalls) CancelAll(error)            {}
func (noCalls) End(error)                  {}

var errAway = fault.New(fault.Unavailable, "the engine is away")

// late makes a container of an attempt whose creation was never answered.
func (b *harness) late(attempt string) (id string) {
	b.t.Helper()
	labels := map[string]string{runtime.LabelRun: "r1", runtime.LabelOwner: "me", runtime.LabelAttempt: attempt}
	id, err := b.engine.Create(b.t.Context(), runtime.ContainerSpec{Name: "late" + attempt, Image: "sha256:debian", Labels: labels})
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// left is a run that goes on without its process.
func (b *harness) left() *execution {
	b.t.Helper()
	x := b.execution()
	ctx, detach := context.WithCancelCause(b.t.Context())
	over := make(chan struct{}) // closed a while after its first process has ended
	b.engine.Program = enginetest.WithInit(func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		select {
		case <-ctx.Done():
			return 137
		case <-over:
			return succeed(ctx, spec, stdout, stderr)
		}
	})
	x.run.Durable = true
	x.run.LedBy(leaving{detach: detach}, nil)
	if _, err := x.Attempt(ctx); err == nil {
		b.t.Fatal("it ended before its process let it go")
	}
	if x.run.State() != api.Running {
		b.t.Fatalf("it is %s", x.run.State())
	}
	x.Release()
	time.AfterFunc(200*time.Millisecond, func() { close(over) })
	return x
}

// below names everything in a directory.
func below(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, name); err == nil && rel != "." {
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return strings.Join(names, " ")
}

// digest is the SHA-256 of a text.
func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// states of the containers that there are.
func (b *harness) states() string {
	b.t.Helper()
	refs, err := b.engine.ContainersByLabel(b.t.Context(), map[string]string{runtime.LabelRun: ""})
	if err != nil {
		b.t.Fatal(err)
	}
	var states []string
	for _, ref := range refs {
		states = append(states, ref.State)
	}
	return strings.Join(states, " ")
}
