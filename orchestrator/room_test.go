package orchestrator

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

func TestAHandoffNeedsRoom(t *testing.T) {
	w := newCallFixture(t)
	id := w.submitScript(script{Mark: "a", Until: "refused"})
	w.until(id, running)
	calls := newChildRuns(w.service.job(id))
	call := handoff.Call{Target: &handoff.Unit{Name: "worker"}}
	w.service.home.Disks = runtime.NewDisks(1<<60, w.opts.Home)
	if _, err := calls.Start(t.Context(), call); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a call: %v", err)
	}
	free, err := runtime.FreeBytes(w.opts.Home)
	if err != nil {
		t.Fatal(err)
	}
	w.service.home.Disks = runtime.NewDisks(1, w.opts.Home)
	call.Files = []handoff.File{{Name: "large", Size: 2 * free}}
	if _, err := calls.Start(t.Context(), call); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "must stay free") {
		t.Errorf("a call with more than there is room for: %v", err)
	}
	w.open("refused")
	w.await(id)
}

func TestASpoolStopsWhereTheRoomEnds(t *testing.T) {
	w := newFixture(t)
	spool, err := w.service.NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Remove()
	full := fault.New(fault.Unavailable, "full")
	looks := 0
	spool.room = func(int64) error {
		if looks++; looks > 2 {
			return full
		}
		return nil
	}
	from := &counted{Reader: io.LimitReader(endless{}, 1<<30)}
	if err := spool.Add("doc", "doc", from, 1<<30); !fault.Is(err, fault.Unavailable) || from.n > 4*roomStep {
		t.Errorf("after %d bytes: %v", from.n, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type counted struct {
	io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func TestNothingNewBeginsWithoutRoom(t *testing.T) {
	w := newFixture(t, func(o *settings) { o.MinFreeDisk = 1 << 60; o.Retries = 0 })
	if _, err := w.service.NewSpool(); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a spool: %v", err)
	}
	if err := w.service.Room(-1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an upload: %v", err)
	}
	if _, _, err := w.service.PutUnit(t.Context(), "other", new(bytes.Buffer)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a unit: %v", err)
	}
	u, err := w.service.units.Get(t.Context(), "worker")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := w.inContainers.Build(t.Context(), u, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a build: %v", err)
	}
	for _, call := range w.engine.Calls() {
		if call == "Build" {
			t.Error("an image was built")
		}
	}
}
