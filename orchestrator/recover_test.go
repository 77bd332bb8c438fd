package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// What a process left in the middle, the next one brings to its end, and no program
// runs twice in one attempt.
func TestServiceRecovers(t *testing.T) {
	t.Parallel()
	t.Run("a run that goes on meanwhile", func(t *testing.T) {
		w := newFixture(t)
		id := w.submit(orders{Mark: "a", Until: "go", Lines: 2, File: "f"})
		w.until(id, running)
		w.stop()
		w.start()
		w.open("go")
		w.wantOnce(id, "a")
	})
	t.Run("a run that ended meanwhile", func(t *testing.T) {
		w := newFixture(t)
		id := w.submit(orders{Mark: "a", Until: "go", Lines: 2, File: "f"})
		w.until(id, running)
		w.stop()
		w.open("go")
		within(t, func() bool {
			refs, _ := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: id})
			return len(refs) == 1 && refs[0].State == "exited"
		}, func() string { return "the program didn't end" })
		w.start()
		w.wantOnce(id, "a")
	})
	t.Run("runs that wait", func(t *testing.T) {
		w := newFixture(t, func(o *settings) { o.Concurrency = 1 })
		first, second := w.submit(orders{Mark: "a", Until: "go", File: "f", Lines: 2}), w.submit(orders{Mark: "b", File: "f", Lines: 2})
		w.until(first, running)
		w.stop()
		w.start()
		w.open("go")
		w.wantOnce(first, "a")
		w.wantOnce(second, "b")
	})
	t.Run("a run whose container vanished is tried again", func(t *testing.T) {
		w := newFixture(t)
		id := w.submit(orders{Mark: "a", Until: "go"})
		w.until(id, running)
		w.stop()
		if err := runtime.RemoveAll(trusted.Context(t), w.engine, id, w.service.home.Owner); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.open("go")
		if record := w.await(id); record.Outcome != api.Success || record.Retries != 1 || !strings.Contains(record.Attempts[0].Error.Message, "vanished") {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("a request to cancel", func(t *testing.T) {
		w := newFixture(t)
		id := w.submit(orders{Mark: "a", Until: "never"})
		w.until(id, running)
		w.stop()
		w.dieCancelling(id)
		w.start()
		if record := w.await(id); record.Outcome != api.WasCancelled || !strings.Contains(record.Error.Message, "because") {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("while the engine is away", func(t *testing.T) {
		w := newFixture(t)
		id := w.submit(orders{Mark: "a", Until: "go", File: "f", Lines: 2})
		w.until(id, running)
		w.stop()
		w.breaks("Probe", fault.New(fault.Unavailable, "the engine is away"))
		w.start()
		w.open("go")
		w.breaks("Probe", nil)
		w.wantOnce(id, "a")
	})
	t.Run("with the unit's version that it was accepted with", func(t *testing.T) {
		w := newFixture(t, func(o *settings) { o.Concurrency = 1 })
		first, second := w.submit(orders{Mark: "a", Until: "go", File: "f", Lines: 2}), w.submit(orders{Mark: "b", File: "f", Lines: 2})
		w.until(first, running)
		w.stop()
		if !w.service.isLive(first) {
			t.Error("a sweep that goes on while the server ends would take a run for a stray that the next server takes up")
		}
		write(t, filepath.Join(w.opts.Sources[0], "worker", "schema.json"), `{"input": {"type": "object", "required": ["new"]}, "output": {"type": "object"}}`)
		w.start()
		w.open("go")
		w.wantOnce(first, "a")
		w.wantOnce(second, "b")
		if _, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker"}); !fault.Is(err, fault.Input) {
			t.Errorf("the new contract isn't in force: %v", err)
		}
	})
	t.Run("and removes what belongs to no run", func(t *testing.T) {
		w := newFixture(t)
		w.stop()
		write(t, filepath.Join(w.opts.Home, "runs", "stray", "1", "f"), "x")
		write(t, filepath.Join(w.opts.Home, "spool", "half", "0"), "x")
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(w.opts.Home, "runs", "stray"), old, old); err != nil {
			t.Fatal(err)
		}
		image, err := w.engine.Image(trusted.Context(t), dockertest.Image)
		if err != nil {
			t.Fatal(err)
		}
		stray := runtime.ContainerSpec{Image: image.ID, Labels: map[string]string{runtime.LabelOwner: w.service.home.Owner, runtime.LabelRun: "stray"}}
		if _, err := w.engine.Create(trusted.Context(t), stray); err != nil {
			t.Fatal(err)
		}
		w.start()
		within(t, func() bool {
			refs, _ := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: ""})
			strays, _ := filepath.Glob(filepath.Join(w.opts.Home, "runs", "*"))
			return len(refs)+len(strays) == 0
		}, func() string { return "strays are left" })
	})
}

// wantOnce checks a run with a file "f" and two lines of log that was interrupted.
func (w *fixture) wantOnce(id, mark string) {
	w.t.Helper()
	record := w.await(id)
	if record.Outcome != api.Success || record.Retries != 0 || len(record.Files) != 1 || w.starts(mark) != 1 {
		w.t.Errorf("started %d times: %s", w.starts(mark), show(record))
	}
	n := 0
	for _, err := range w.service.Feed.Log(trusted.Context(w.t), id, api.LogFilter{}) {
		if err != nil {
			w.t.Error(err)
		}
		n++
	}
	if n != 2 {
		w.t.Errorf("%d lines of log, want 2", n)
	}
	events := w.events(id, 0)
	for i, e := range events {
		if e.Seq != int64(i+1) {
			w.t.Errorf("events have a gap: %+v", events)
		}
	}
	if events[len(events)-1].Type != api.EventEnd {
		w.t.Errorf("the last event is %+v", events[len(events)-1])
	}
}

func (w *fixture) events(id string, after int64) []api.Event {
	var events []api.Event
	for e, err := range w.service.Feed.Events(trusted.Context(w.t), id, after) {
		if err != nil {
			w.t.Error(err)
			break
		}
		events = append(events, e)
	}
	return events
}

func TestServiceEventsResume(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	id := w.submit(orders{Mark: "a", Until: "go"})
	var seen []int64
	after := int64(0)
	for n := 0; ; n++ { // a reader that goes away after every event
		if n == 3 {
			w.open("go")
		}
		var last api.Event
		for e, err := range w.service.Feed.Events(trusted.Context(t), id, after) {
			if err != nil {
				t.Fatal(err)
			}
			last = e
			break
		}
		seen, after = append(seen, last.Seq), last.Seq
		if last.Type == api.EventEnd {
			break
		}
	}
	if !slices.IsSorted(seen) || len(seen) != int(after) {
		t.Errorf("seen %v", seen)
	}
	ctx, cancel := context.WithCancel(trusted.Context(t))
	cancel()
	for _, err := range w.service.Feed.Events(ctx, "nobody", 0) {
		if err == nil {
			t.Error("events of a run that there isn't")
		}
	}
}
