package orchestrator

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

func TestAHandoffNeedsRoom(t *testing.T) {
	t.Parallel()
	w := newCallFixture(t)
	id := w.submitScript(script{Mark: "a", Until: "refused"})
	w.until(id, running)
	calls := newChildRuns(w.service.jobs.get(id))
	call := handoff.Call{Target: &handoff.Unit{Name: "worker"}}
	w.service.home.Disks = runtime.NewDisks(1<<60, w.opts.Home)
	if _, err := calls.Start(trusted.Context(t), call); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a call: %v", err)
	}
	free, err := runtime.FreeBytes(w.opts.Home)
	if err != nil {
		t.Fatal(err)
	}
	w.service.home.Disks = runtime.NewDisks(1, w.opts.Home)
	call.Files = []handoff.File{{Name: "large", Size: 2 * free}}
	if _, err := calls.Start(trusted.Context(t), call); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "must stay free") {
		t.Errorf("a call with more than there is room for: %v", err)
	}
	w.open("refused")
	w.await(id)
}

func TestNothingNewBeginsWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(o *settings) { o.MinFreeDisk = 1 << 60; o.Retries = 0 })
	if _, err := w.service.NewSpool(); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a spool: %v", err)
	}
	if err := w.service.Room(-1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an upload: %v", err)
	}
	if _, _, err := w.service.Units.Put(trusted.Context(t), "other", new(bytes.Buffer)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a unit: %v", err)
	}
	u, err := w.service.Units.Get(trusted.Context(t), "worker")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := w.inContainers.Build(trusted.Context(t), u, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a build: %v", err)
	}
	for _, call := range w.engine.Calls() {
		if call == "Build" {
			t.Error("an image was built")
		}
	}
}
