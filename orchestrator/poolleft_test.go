package orchestrator

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// wantNone returns when the engine has nothing of the sandbox.
func (w *works) wantNone(id string) {
	w.t.Helper()
	var refs []runtime.ContainerRef
	within(w.t, func() bool {
		refs, _ = w.engine.ContainersByLabel(w.t.Context(), map[string]string{runtime.LabelRun: id})
		return len(refs) == 0
	}, func() string { return fmt.Sprintf("nothing of sandbox %s is left: %v", id, refs) })
}

// leaving has a unit want a sandbox, and returns the id of the one that can't be started.
func (w *works) leaving() (id string) {
	w.t.Helper()
	write(w.t, filepath.Join(w.opts.Sources[0], "worker", "agent.yaml"), "name: worker\nwarm: 1\n")
	p := w.service.pool
	p.survey(w.t.Context())
	p.nudge()
	within(w.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for id = range p.left {
			return true
		}
		return false
	}, func() string { return "a sandbox could not be started" })
	return id
}

func TestWhatTheEngineCouldNotRemoveOfThePoolGoesLater(t *testing.T) {
	away := fault.New(fault.Unavailable, "the engine is away")
	t.Run("of a sandbox that was not wanted any more", func(t *testing.T) {
		w := newPoolWorks(t, map[string]int{"worker": 1})
		waiting := w.stocked("worker", 1).Waiting[0]
		w.breaks("Remove", away)
		w.service.pool.mu.Lock()
		w.service.pool.shelf("worker").fixed = 0
		w.service.pool.mu.Unlock()
		within(t, func() bool { return w.leftOver(waiting.ID) }, func() string { return "it was to be removed" })
		w.breaks("Remove", nil)
		w.wantNone(waiting.ID)
	})
	t.Run("of one that could not be started", func(t *testing.T) {
		w := newPoolWorks(t, nil)
		w.breaks("Start", away)
		w.breaks("Remove", away)
		id := w.leaving()
		w.breaks("Remove", nil)
		w.wantNone(id)
	})
	t.Run("of one whose creation was never answered", func(t *testing.T) {
		w := newPoolWorks(t, nil)
		image := w.await(w.submit(orders{Mark: "a"})).Image.ID
		w.breaks("Create", away)
		id := w.leaving()
		w.breaks("Create", nil)
		labels := map[string]string{runtime.LabelRun: id, runtime.LabelOwner: w.service.exec.owner}
		if _, err := w.engine.Create(t.Context(), runtime.ContainerSpec{Name: "late", Image: image, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		w.wantNone(id)
	})
}

func (w *works) leftOver(id string) bool {
	p := w.service.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	_, left := p.left[id]
	return left
}
