package orchestrator

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime"
)

func TestARunInAWaitingSandboxIsEndedAsAnyOther(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"worker", "asker"} {
		t.Run(unit, func(t *testing.T) {
			limit := 300 * time.Millisecond
			w := newPoolFixture(t, map[string]int{unit: 1})
			if unit == "asker" {
				w.asking()
			}
			id := w.submitTo(unit, orders{Mark: "a", Until: "never"})
			w.until(id, running)
			if _, err := w.service.Cancel(trusted.Context(t), id, "not wanted"); err != nil {
				t.Fatal(err)
			}
			if record := w.await(id); record.Outcome != api.WasCancelled || !strings.Contains(record.Error.Message, "not wanted") {
				t.Errorf("record %s", show(record))
			}

			timed := func(o orders) api.Record {
				w.awaitPoolUnit(unit, "one has waited for longer than the run may take", func(s api.PoolUnit) bool {
					return len(s.Waiting) > 0 && time.Since(s.Waiting[0].Since) > limit
				})
				record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: unit, Input: encoded(o), Timeout: limit})
				if err != nil {
					t.Fatal(err)
				}
				return w.await(record.ID)
			}
			record := timed(orders{Mark: "b"})
			for record.Outcome == api.TimedOut && limit < testkit.Patience/8 { // a busy machine may take longer for it
				limit *= 4
				record = timed(orders{Mark: "b"})
			}
			w.wantWaited(record)
			record = timed(orders{Mark: "c", Until: "never"})
			if record.Outcome != api.TimedOut || record.Container.WaitedMS <= run.Milliseconds(limit) ||
				states(record) != "idle starting running timeout cleanup idle" {
				t.Fatalf("record %s", show(record))
			}
			if took := record.Transitions[3].At.Sub(record.Transitions[1].At); took < limit*9/10 {
				t.Errorf("it had %v of %v: %s", took, limit, show(record))
			}
		})
	}
}

// What an attempt took from the pool and could not be removed goes before the next attempt
// begins, as a container of the run's own does.
func TestAnAttemptsSandboxGoesBeforeTheNextOne(t *testing.T) {
	t.Parallel()
	w := newPoolFixture(t, map[string]int{"worker": 1})
	first := w.stocked("worker", 1).Waiting[0]
	away := fault.New(fault.Unavailable, "the engine is away")
	id := w.submit(orders{Mark: "a", Until: "go"})
	w.until(id, func(r api.Record) bool { return running(r) && w.starts("a") == 1 })
	w.breaks("Remove", passes{away}) // once: it goes before the run is out of retries
	if err := w.engine.Kill(trusted.Context(t), first.Container); err != nil {
		t.Fatal(err)
	}
	w.until(id, func(r api.Record) bool { return running(r) && len(r.Attempts) == 1 && w.starts("a") == 2 })
	if refs, _ := w.engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: first.ID}); len(refs) > 0 {
		t.Errorf("left beside the next attempt: %v", refs)
	}
	w.open("go")
	w.await(id)
}

func TestAnEarlySuccessStays(t *testing.T) {
	t.Parallel()
	w := newPoolFixture(t, map[string]int{"worker": 1})
	end := func(ending func(int) int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ending = ending
	}
	for _, c := range []struct {
		name string
		code int
	}{
		{"of a container that takes its time, and nobody waits for it", 0},
		{"of a container that ends badly then", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, unit := range []string{"worker", "asker"} { // one that waited, and one that didn't
				hold := make(chan struct{})
				end(func(int) int { <-hold; return c.code })
				id := w.submitTo(unit, orders{Mark: "a", File: "f"})
				w.until(id, func(r api.Record) bool { return r.Outcome != "" })
				within(t, func() bool { running, _ := w.service.queue.Counts(); return running == 0 }, func() string { return "it holds its slot" })
				close(hold)
				record := w.await(id)
				if record.Outcome != api.Success || *record.ExitCode != 0 || len(record.Files) != 1 || len(record.Warnings) > 0 {
					t.Errorf("record %s", show(record))
				}
				keepsSchema(t, record)
			}
		})
	}
}
