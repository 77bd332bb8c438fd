package orchestrator

import (
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

const week = 7 * 24 * time.Hour

// isKept tells whether the run is there after runs were pruned at the given time.
func (w *fixture) isKept(id string, now time.Time) bool {
	w.t.Helper()
	if err := w.service.Retention.Sweep(trusted.Context(w.t), now); err != nil {
		w.t.Fatal(err)
	}
	_, err := w.service.Runs.Get(trusted.Context(w.t), id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		w.t.Fatal(err)
	}
	return err == nil
}

// A clock that is a year ahead is the same as runs that ended a year earlier.
func TestAClockThatIsAheadAtTheStartRemovesNoRuns(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) { s.RetentionAge = week })
	id := w.await(w.submit(orders{Mark: "a"})).ID
	w.stop()
	w.spoil(id, func(r *store.Run) { r.FinishedAt = r.FinishedAt.AddDate(-1, 0, 0) })
	w.start()
	if !w.isKept(id, time.Now()) {
		t.Fatal("all runs were removed at the start of a server with another clock")
	}
	if w.isKept(id, time.Now().Add(time.Hour)) {
		t.Error("it is kept for ever")
	}
}

func TestOldRunsAreRemovedAtOnceWhereThereAreNewOnes(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) { s.RetentionAge = week })
	id, young := w.await(w.submit(orders{Mark: "a"})).ID, w.await(w.submit(orders{Mark: "b"})).ID
	w.stop()
	w.spoil(id, func(r *store.Run) { r.FinishedAt = r.FinishedAt.AddDate(-1, 0, 0) })
	w.start()
	if now := time.Now(); w.isKept(id, now) || !w.isKept(young, now) {
		t.Error("the wrong runs were removed")
	}
}
