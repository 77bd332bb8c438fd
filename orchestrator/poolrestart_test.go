package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
)

// claimed is how far an earlier process came with a claim.
type claimed string

const (
	beforeRename claimed = "before its directory is the run's"
	afterRename  claimed = "when its directory is the run's"
	begun        claimed = "when its program has the run, and nobody has said that it runs"
)

// dieClaiming has a process die in the middle of a claim, and starts the next one. The run may
// take so long, and the sandbox has waited for longer; 0 is the unit's own time.
func (w *fixture) dieClaiming(unit string, m claimed, o orders, limit time.Duration) (id string, waiting *pool.Sandbox) {
	w.t.Helper()
	blocker := w.submitTo(unit, orders{Mark: "blocker", Until: "free"})
	w.until(blocker, running)
	w.awaitPoolUnit(unit, "one has waited", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 && time.Since(s.Waiting[0].Since) > limit })
	record, _, err := w.service.Submit(trusted.Context(w.t), spool.Submission{Unit: unit, Input: encoded(o), Timeout: limit})
	if err != nil {
		w.t.Fatal(err)
	}
	id = record.ID
	waiting = w.inContainers.Pool().Acquire(w.service.jobs.get(id).Unit) // its turn doesn't come in this process
	w.stop()
	w.suppose(id, waiting, m)
	w.start()
	w.open("free")
	w.await(blocker)
	return id, waiting
}

// suppose puts everything into the state that it is in at a moment.
func (w *fixture) suppose(id string, waiting *pool.Sandbox, m claimed) {
	w.t.Helper()
	if m != beforeRename {
		if err := os.Rename(waiting.Layout.Dir, filepath.Join(w.opts.Home, "runs", id, "1")); err != nil {
			w.t.Fatal(err)
		}
	}
	s, err := w.opts.service(w.engine)
	if err != nil {
		w.t.Fatal(err)
	}
	left, err := s.store.Runs.Unfinished(trusted.Context(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	row := left[slices.IndexFunc(left, func(r store.Run) bool { return r.ID == id })]
	j, err := newRecovery(s, nil).restore(trusted.Context(w.t), row)
	if err != nil {
		w.t.Fatal(err)
	}
	j.Attempt = 1
	j.Saved = json.RawMessage(fmt.Sprintf(`{"sandboxes":{"1":%q}}`, waiting.ID))
	if err := j.Enter(api.Starting, ""); err != nil {
		w.t.Fatal(err)
	}
	if m == begun {
		layout := runtime.OpenLayout(j.AttemptDir(), "")
		if err := errors.Join(layout.LinkInputs(j.InputDir()), layout.WriteInput(j.Input.Payload.JSON())); err != nil {
			w.t.Error(err)
		}
		if err := waiting.Runtime.StartProgram(runtime.Spec{}, nil); err != nil {
			w.t.Fatal(err)
		}
	}
	waiting.Runtime.Release() // as the kernel does with what a process had open
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func TestAClaimOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	one := func(o *settings) { o.Concurrency = 1 }
	for _, c := range []struct {
		unit  string
		at    claimed
		keeps bool // the waiting sandbox is the run's
	}{
		{"worker", beforeRename, false},
		{"worker", afterRename, false}, // its init heard nothing
		{"worker", begun, true},
		{"asker", beforeRename, false},
		{"asker", afterRename, true}, // its program asks again
	} {
		t.Run(fmt.Sprintf("%s, %s", c.unit, c.at), func(t *testing.T) {
			w := newPoolFixture(t, map[string]int{c.unit: 1}, one)
			if c.unit == "asker" {
				w.asking()
			}
			id, waiting := w.dieClaiming(c.unit, c.at, orders{Mark: "a", File: "f", Lines: 2}, 0)
			w.wantOnce(id, "a")
			record := w.await(id)
			if kept := record.Container.ID == waiting.Runtime.ID(); kept != c.keeps {
				t.Errorf("the waiting sandbox is the run's: %v: %s", kept, show(record))
			}
			if refs, _ := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: waiting.ID}); len(refs) > 0 {
				t.Errorf("left: %v", refs)
			}
		})
	}
	t.Run("with all of the run's time", func(t *testing.T) {
		for limit := 3 * time.Second; ; limit *= 4 {
			w := newPoolFixture(t, map[string]int{"asker": 1}, one)
			w.asking()
			id, _ := w.dieClaiming("asker", afterRename, orders{Mark: "a", Until: "go", File: "f", Lines: 2}, limit)
			w.until(id, func(r api.Record) bool { return running(r) || r.Outcome != "" })
			w.open("go")
			if w.await(id).Outcome == api.TimedOut && limit < testkit.Patience/4 { // a busy machine may take longer for it
				continue
			}
			w.wantOnce(id, "a")
			return
		}
	})
	t.Run("that runs", func(t *testing.T) {
		for _, unit := range []string{"worker", "asker"} {
			w := newPoolFixture(t, map[string]int{unit: 1})
			if unit == "asker" {
				w.asking()
			}
			w.awaitPoolUnit(unit, "one waits", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 })
			id := w.submitTo(unit, orders{Mark: "a", Until: "go", File: "f", Lines: 2})
			record := w.until(id, running)
			w.stop()
			w.start()
			w.open("go")
			w.wantOnce(id, "a")
			w.wantWaited(w.await(id))
			if after := w.await(id); after.Container.ID != record.Container.ID {
				t.Errorf("record %s", show(after))
			}
		}
	})
	t.Run("that has ended", func(t *testing.T) {
		w := newPoolFixture(t, map[string]int{"worker": 1})
		w.stocked("worker", 1)
		id := w.submit(orders{Mark: "a", Until: "go", File: "f", Lines: 2})
		record := w.until(id, running)
		w.stop()
		w.open("go")
		within(t, func() bool {
			state, err := w.engine.Inspect(trusted.Context(t), record.Container.ID)
			return err == nil && state.Status == runtime.StatusExited
		}, func() string { return "the program didn't end" })
		w.start()
		w.wantOnce(id, "a")
	})
}
