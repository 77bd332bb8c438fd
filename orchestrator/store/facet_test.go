package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestRunsAreCountedAsTheirListHasThem(t *testing.T) {
	s := open(t)
	insertMixed(t, s, 200)
	for i, f := range everyFilter() {
		column := facets[i%len(facets)]
		want := map[string]int64{}
		f.Limit = 1000
		for _, r := range pages(t, s, f) {
			want[map[string]string{"state": r.State, "outcome": r.Outcome, "error_kind": r.ErrorKind, "unit": r.Unit, "kind": r.Kind}[column]]++
		}
		facet, err := s.Runs.Facet(t.Context(), f, column)
		must(t, err)
		got, runs := map[string]int64{}, int64(0)
		for _, c := range facet.Counts {
			got[c.Value] = c.Runs
			runs += c.Runs
		}
		if diff := cmp.Diff(want, got); diff != "" || facet.Runs != runs || facet.More {
			t.Fatalf("%+v by %s: %s %+v", f, column, diff, facet)
		}
	}
	_, err := s.Runs.Facet(t.Context(), Filter{}, "record")
	wantKind(t, err, fault.Input)
}

func TestTheNewestRunsAreCounted(t *testing.T) {
	s := open(t)
	insertMany(t, s, mostFaceted+5, func(i int, r *Run) { r.Unit = []string{"old", "new"}[min(i/5, 1)] })
	facet, err := s.Runs.Facet(t.Context(), Filter{}, "unit")
	must(t, err)
	if !facet.More || facet.Runs != mostFaceted || facet.Counts[0].Value != "new" {
		t.Errorf("%+v", facet)
	}
}

func TestTheLastRunsOfAUnitAreReadByItsIndex(t *testing.T) {
	s := open(t)
	insertMany(t, s, 300, func(i int, r *Run) {
		if i%3 > 0 {
			*r = ended(*r)
		}
		r.Unit = []string{"u", "v"}[i%2]
	})
	rows, err := s.Runs.LastEnded(t.Context(), "u", Owned{}, 10)
	must(t, err)
	for i, r := range rows {
		if r.Unit != "u" || !r.Finished || i > 0 && r.CreatedAt.After(rows[i-1].CreatedAt) {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if len(rows) != 10 {
		t.Errorf("%d rows", len(rows))
	}
	if got := plan(t, s, selectLastEnded+" ORDER BY created_at DESC, seq DESC LIMIT ?", "u", 10); !strings.Contains(got, "runs_by_unit (") || strings.Contains(got, "TEMP B-TREE") {
		t.Error(got)
	}
}
