package orchestrator

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

const readerCard = `{
  "name": "reader", "version": "1.0.0", "description": "Reads its model.", "capabilities": [],
  "inputs": [{"media_type": "*/*", "description": "anything"}],
  "outputs": [{"media_type": "application/json", "description": "its model"}],
  "config": {"model-path": {"type": "string", "description": "the model", "default": null}}
}`

// newReaderFixture is a fixture with the Agentic Unit "reader", which prints what its model holds,
// beside "worker" and "caller". The operator has given it one.
func newReaderFixture(t *testing.T, change ...func(*settings)) *fixture {
	t.Helper()
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	write(t, model, "weights")
	return newCallFixture(t, append([]func(*settings){func(o *settings) {
		addReader(t, o.Sources[0], "")
		o.Units = map[string]units.Settings{
			"reader": {Given: unit.Given{Limits: capsule.Limits{Timeout: time.Minute}}},
			"caller": {Given: unit.Given{MayCall: []string{"reader"}}},
		}
		o.Containers.Units["reader"] = container.Extra{ModelPath: model, StdinBytes: 10}
		o.Concurrency = 1
	}}, change...)...)
}

func addReader(t *testing.T, sources, dockerfile string) {
	t.Helper()
	write(t, filepath.Join(sources, "reader", "Dockerfile"), "FROM "+dockertest.Image+"\nCMD [\"reader\"]\n"+dockerfile)
	write(t, filepath.Join(sources, "reader", "agent.yaml"), "kind: au\nname: reader\n")
}

// readerProgram is that of "reader"; its starts are counted as "card" and "reader".
func (w *fixture) readerProgram(spec runtime.ContainerSpec, dir map[string]string) int {
	mark, printed := "reader", ""
	if slices.Contains(spec.Cmd, "--describe") {
		mark, printed = "card", readerCard
	} else {
		weights, err := os.ReadFile(dir["/models/tiny.gguf"])
		if err != nil {
			return 2
		}
		printed = fmt.Sprintf(`{"model": %q%s}`, weights, given(spec, dir))
	}
	w.mu.Lock()
	w.started[mark]++
	w.mu.Unlock()
	_ = os.WriteFile(dir["/run/aod/stdout"], []byte(printed), 0o600)
	return 0
}

// given is all that its one call brought the program, where the prompt is "tell".
func given(spec runtime.ContainerSpec, dir map[string]string) string {
	at := slices.Index(spec.Entrypoint, "-stdin")
	if !slices.Contains(spec.Cmd, "tell") || at < 0 {
		return ""
	}
	stdin, err := os.ReadFile(filepath.Join(dir["/io/input"], path.Base(spec.Entrypoint[at+1])))
	if err != nil {
		return fmt.Sprintf(`, "stdin": %q`, err)
	}
	mood := slices.DeleteFunc(slices.Clone(spec.Env), func(e string) bool { return !strings.HasPrefix(e, "MOOD=") })
	return fmt.Sprintf(`, "stdin": %q, "args": %q, "mood": %q`, stdin, strings.Join(spec.Cmd, " "), strings.Join(mood, " "))
}

func (w *fixture) submitReader(stdin string) (api.Record, error) {
	w.t.Helper()
	files, err := w.service.NewSpool()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := files.Add("stdin", "stdin", strings.NewReader(stdin), 100); err != nil {
		w.t.Fatal(err)
	}
	record, _, err := w.service.Submit(trusted.Context(w.t), spool.Submission{Unit: "reader", Files: files})
	return record, err
}

func TestEveryRunOfAUnitHasItsModel(t *testing.T) {
	t.Parallel()
	const want = `{"model": "weights"}`
	t.Run("one that is submitted, and one that is made again", func(t *testing.T) {
		w := newReaderFixture(t)
		record, err := w.submitReader("ten bytes!")
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := w.service.Rerun(trusted.Context(t), w.await(record.ID).ID, "", api.Rerun{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{record.ID, again.ID} {
			if record := w.await(id); string(record.Output) != want {
				t.Errorf("record %s", show(record))
			}
		}
	})
	t.Run("one that another unit calls", func(t *testing.T) {
		w := newReaderFixture(t)
		w.await(w.submitScript(script{Mark: "a", Calls: []script{{Target: "reader"}}}))
		if got := w.answers["a"]; len(got) != 1 || !strings.Contains(got[0], `"weights"`) {
			t.Errorf("answers %q", got)
		}
	})
	t.Run("one that an earlier process accepted", func(t *testing.T) {
		w := newReaderFixture(t)
		w.until(w.submit(orders{Mark: "first", Until: "go"}), running)
		record, err := w.submitReader("")
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.start()
		w.open("go")
		if record := w.await(record.ID); string(record.Output) != want {
			t.Errorf("record %s", show(record))
		}
	})
}

func TestStdinIsBoundedByTheUnitsSetting(t *testing.T) {
	t.Parallel()
	w := newReaderFixture(t)
	if _, err := w.submitReader("eleven byte"); !fault.Is(err, fault.Input) {
		t.Errorf("error %v", err)
	}
	if limit, err := w.service.Units.StdinLimit(trusted.Context(t), "reader"); err != nil || limit != 10 {
		t.Errorf("limit %d, %v", limit, err)
	}
	if _, err := w.service.Units.StdinLimit(trusted.Context(t), "worker"); !fault.Is(err, fault.Input) {
		t.Errorf("of a capsule: %v", err)
	}
}

func TestAServiceWantsItsModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "model"), "x")
	serve := func(engine container.Engine, models ...string) error {
		units := map[string]container.Extra{"none": {}}
		for i, model := range models {
			units[fmt.Sprint("u", i)] = container.Extra{ModelPath: model}
		}
		s, err := settings{Options: Options{Home: filepath.Join(t.TempDir(), "home")}, Containers: container.Options{Units: units}}.service(engine)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	engine := enginetest.NewFake(nil)
	if err := serve(engine, dir, filepath.Join(dir, "model")); err != nil {
		t.Errorf("models that are there: %v", err)
	}
	err := serve(engine, filepath.Join(dir, "gone"), dir, "/dev/null")
	var said []string
	for _, f := range fault.Public(err).Findings {
		said = append(said, f.String())
	}
	if !fault.Is(err, fault.Input) || len(said) != 2 || !strings.HasPrefix(said[0], "/unit/u0/model_path: it isn't there") ||
		!strings.HasPrefix(said[1], "/unit/u2/model_path: it is neither") {
		t.Errorf("%v: %q", err, said)
	}
	if err := serve(elsewhere{Fake: engine}, dir); !fault.Is(err, fault.Unsupported) {
		t.Errorf("an engine elsewhere: %v", err)
	}
	if err := serve(elsewhere{Fake: engine}); err != nil {
		t.Errorf("an engine elsewhere, without models: %v", err)
	}
}

// elsewhere is an engine that doesn't see this machine's files.
type elsewhere struct {
	*enginetest.Fake
	runtime.Volumes
	runtime.Archives
	runtime.Execs
}

func (elsewhere) Remote() bool { return true }

func TestTheCardOfAUnit(t *testing.T) {
	t.Parallel()
	t.Run("is asked for once, however many want it", func(t *testing.T) {
		w := newReaderFixture(t)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				card, err := w.service.Units.Card(trusted.Context(t), "reader")
				if err != nil || !bytes.Equal(card, []byte(readerCard)) {
					t.Errorf("%s, %v", card, err)
				}
			})
		}
		all.Wait()
		if n := w.starts("card"); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
		w.noRunDirs()
	})
	t.Run("is that of its newest version", func(t *testing.T) {
		w := newReaderFixture(t)
		for n := range 2 {
			addReader(t, w.opts.Sources[0], fmt.Sprintf("RUN version %d\n", n))
			if _, err := w.service.Units.Card(trusted.Context(t), "reader"); err != nil {
				t.Fatal(err)
			}
			if got := w.starts("card"); got != n+1 {
				t.Errorf("version %d: it was asked %d times", n, got)
			}
		}
	})
	t.Run("is had although somebody removed its image", func(t *testing.T) {
		w := newReaderFixture(t)
		if record, err := w.submitReader(""); err != nil || w.await(record.ID).Outcome != api.Success {
			t.Fatal(err)
		}
		if err := os.RemoveAll(w.service.path("cards")); err != nil {
			t.Fatal(err)
		}
		images, err := w.engine.ImagesByLabel(trusted.Context(t), map[string]string{runtime.LabelUnit: "reader"})
		if err != nil || len(images) != 1 {
			t.Fatal(images, err)
		}
		if err := w.engine.RemoveImage(trusted.Context(t), images[0].ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.service.Units.Card(trusted.Context(t), "reader"); err != nil {
			t.Error(err)
		}
	})
	t.Run("is not to be had of a capsule, or where the engine is away", func(t *testing.T) {
		w := newReaderFixture(t)
		if _, err := w.service.Units.Card(trusted.Context(t), "worker"); !fault.Is(err, fault.Input) {
			t.Errorf("error %v", err)
		}
		w.breaks("Create", fault.New(fault.Unavailable, "the engine is away"))
		if _, err := w.service.Units.Card(trusted.Context(t), "reader"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("error %v", err)
		}
		w.noRunDirs()
	})
	t.Run("is waited for no longer than its caller does", func(t *testing.T) {
		w := newReaderFixture(t)
		ctx, cancel := context.WithCancel(trusted.Context(t))
		cancel()
		if _, err := w.service.Units.Card(ctx, "reader"); err == nil {
			t.Error("it is asked for nobody")
		}
	})
}

// What a process that died over a unit's card has left is gone after the next start.
func TestACardThatWasCutOffLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newReaderFixture(t)
	w.stop()
	const id = "0199aaaa-0000-7000-8000-000000000000"
	write(t, filepath.Join(w.service.runPath(id), "card", "stdout"), "half")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(w.service.runPath(id), long, long); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{runtime.LabelRun: id, runtime.LabelOwner: w.service.home.Owner, runtime.LabelPurpose: "card"}
	if _, err := w.engine.Create(trusted.Context(t), runtime.ContainerSpec{Image: dockertest.Image, Labels: labels}); err != nil {
		t.Fatal(err)
	}
	w.start()
	within(t, func() bool {
		left, err := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: id})
		return err == nil && len(left) == 0
	}, func() string { return "the container is left" })
	within(t, func() bool {
		_, err := os.Stat(w.service.runPath(id))
		return os.IsNotExist(err)
	}, func() string { return "the directory is left" })
}

// noRunDirs holds where no run was made: nothing else keeps a directory.
func (w *fixture) noRunDirs() {
	w.t.Helper()
	if left, _ := filepath.Glob(filepath.Join(w.opts.Home, "runs", "*")); len(left) > 0 {
		w.t.Errorf("directories left: %v", left)
	}
}
