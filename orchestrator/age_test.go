package orchestrator

import (
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/quotas"
	"github.com/agent-on-demand/aod/orchestrator/spool"
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

// A team's runs grow as old as its own setting says, and no team loses runs to what another one keeps.
func TestTeamsKeepTheirRunsEachByItsOwn(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) {
		s.RetentionAge, s.RetentionSize = week, 750_000
		s.Quotas.Teams = map[string]quotas.Bounds{"brief": {Age: time.Hour}, "long": {Age: 52 * week}}
	})
	ran := func(team string, lines int) string {
		record, _, err := w.service.Submit(access.WithOwner(t.Context(), access.Owner{Team: team}),
			spool.Submission{Unit: "worker", Input: encoded(orders{Mark: team, Lines: lines})})
		if err != nil {
			t.Fatal(err)
		}
		return w.await(record.ID).ID
	}
	brief, long, plain := ran("brief", 1), ran("long", 1), ran("plain", 1)
	if !w.isKept(brief, time.Now()) || w.isKept(brief, time.Now().Add(2*time.Hour)) || !w.isKept(plain, time.Now().Add(2*time.Hour)) {
		t.Error("a team's own age doesn't count")
	}
	if w.isKept(plain, time.Now().Add(2*week)) || !w.isKept(long, time.Now().Add(2*week)) {
		t.Error("the age of all counts for who has one, or for nobody")
	}
	first, second := ran("greedy", 5000), ran("greedy", 5000)
	if used, err := w.service.store.Runs.BytesOf(trusted.Context(t), "greedy"); err != nil || used < 800_000 || used > 1_400_000 {
		t.Fatalf("they take %d bytes, %v", used, err)
	}
	if now := time.Now(); w.isKept(first, now) || !w.isKept(second, now) || !w.isKept(long, now) {
		t.Error("the size of one team's runs took those of another, or nothing")
	}
}
