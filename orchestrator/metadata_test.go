package orchestrator

import (
	"encoding/json"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func TestARunIsFoundByItsMetadata(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	ada := spool.Submission{Unit: "worker", Input: encoded(orders{Mark: "a"}), Metadata: map[string]string{"user_id": "ada", "mode": "LIVE"}, Key: "k"}
	record, _, err := w.service.Submit(trusted.Context(t), ada)
	if err != nil {
		t.Fatal(err)
	}
	record = w.await(record.ID)
	keepsSchema(t, record)
	w.await(w.submit(orders{Mark: "b"}))
	again, _, err := w.service.Rerun(trusted.Context(t), record.ID, "", api.Rerun{})
	if err != nil {
		t.Fatal(err)
	}
	w.await(again.ID)
	want := []string{again.ID, record.ID}
	if diff := cmp.Diff(want, w.found(map[string]string{"mode": "LIVE", "user_id": "ada"})); diff != "" {
		t.Error(diff)
	}
	if found := w.found(map[string]string{"mode": "DEMO", "user_id": "ada"}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	w.stop()
	w.start()
	if diff := cmp.Diff(want, w.found(ada.Metadata)); diff != "" {
		t.Errorf("after another start: %s", diff)
	}
	if _, err := w.service.Retention.Prune(trusted.Context(t), api.PruneOptions{}); err != nil {
		t.Fatal(err)
	}
	if found := w.found(ada.Metadata); len(found) > 0 {
		t.Errorf("pruned and found: %v", found)
	}
}

// found lists the runs that have the metadata, and holds what the list shows of it against
// their records.
func (w *fixture) found(metadata map[string]string) (ids []string) {
	w.t.Helper()
	page, err := w.service.Runs.List(trusted.Context(w.t), api.Filter{Metadata: metadata})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range page.Runs {
		record, err := w.service.Runs.Get(trusted.Context(w.t), r.ID)
		if diff := cmp.Diff(record.Metadata, r.Metadata); err != nil || diff != "" {
			w.t.Errorf("%v %s", err, diff)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

func TestMetadataIsAPartOfWhatAKeyStandsFor(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	sub := spool.Submission{Unit: "worker", Metadata: map[string]string{"user_id": "ada", "mode": "DEMO"}, Key: "k"}
	first, _, err := w.service.Submit(trusted.Context(t), sub)
	if err != nil {
		t.Fatal(err)
	}
	if again, joined, err := w.service.Submit(trusted.Context(t), sub); err != nil || !joined || again.ID != first.ID {
		t.Errorf("the same again: %v %v", joined, err)
	}
	for _, other := range []map[string]string{nil, {"user_id": "bob", "mode": "DEMO"}} {
		sub.Metadata = other
		if _, _, err := w.service.Submit(trusted.Context(t), sub); !fault.Is(err, fault.Input) {
			t.Errorf("with %v: %v", other, err)
		}
	}
	w.await(first.ID)
}

func TestMetadataThatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	_, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker", Metadata: map[string]string{"k": ""}, Key: "k"})
	if page, listed := w.service.Runs.List(trusted.Context(t), api.Filter{}); !fault.Is(err, fault.Input) || listed != nil || len(page.Runs) != 0 {
		t.Errorf("%v %v, %d runs", err, listed, len(page.Runs))
	}
}

func TestCallsInheritMetadata(t *testing.T) {
	t.Parallel()
	w := newCallFixture(t)
	raw, err := json.Marshal(script{Mark: "a", Calls: []script{{Mark: "b", Calls: []script{{Mark: "c"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "caller", Input: raw, Metadata: map[string]string{"user_id": "ada"}})
	if err != nil {
		t.Fatal(err)
	}
	if record = w.await(record.ID); depthOf(record.Calls) != 2 {
		t.Fatalf("record %s", show(record))
	}
	if found := w.found(map[string]string{"user_id": "ada"}); len(found) != 3 {
		t.Errorf("%d runs of the tree are found", len(found))
	}
}
