package store

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

var newest = position{math.MaxInt64, math.MaxInt64}

func TestTheRarestLeads(t *testing.T) {
	s := open(t)
	tx, err := s.writer.db.Begin()
	must(t, err)
	for i := range 1100 {
		r := ended(aRun(i))
		r.Metadata = map[string]string{"mode": "DEMO", "user_id": fmt.Sprint(i % 3), "request_id": fmt.Sprint(i)}
		if i == 0 {
			r.Unit = "rare"
		}
		must(t, insert(t.Context(), &transaction{Tx: tx, statements: &statements{}}, r, Key{}, nil))
	}
	must(t, tx.Commit())
	for want, f := range map[string]Filter{
		"user_id":    {Metadata: map[string]string{"mode": "DEMO", "user_id": "1"}},
		"request_id": {Metadata: map[string]string{"mode": "DEMO", "user_id": "1", "request_id": "7"}, States: []string{"completed"}},
		"":           {Metadata: map[string]string{"mode": "DEMO", "user_id": "0"}, Unit: "rare"},
	} {
		by, err := s.lead(t.Context(), f, newest)
		if err != nil || by != want {
			t.Errorf("%+v is led by %q, not %q: %v", f, by, want, err)
		}
	}
}

func TestWhatIsFewAnywayLeads(t *testing.T) {
	for _, f := range []Filter{{Parent: "p"}, {Root: "r"}, {Unfinished: true}} {
		f.Metadata, f.Unit = tags(2), "u"
		if leads := f.leads(); len(leads) != 1 || leads[0] != "" {
			t.Errorf("%+v is led by %q", f, leads)
		}
	}
}

func TestALookAtAnIndexSeesNoTable(t *testing.T) {
	s := open(t)
	f := Filter{Unit: "u", States: []string{"failed", "running"}, Metadata: tags(2), Since: epoch}
	for _, by := range f.leads() {
		text, args := f.counting(by, newest, firstLook)
		if got := plan(t, s, text, args...); strings.Count(got, "USING COVERING INDEX") != strings.Count(got, "SEARCH") || strings.Contains(got, "B-TREE") {
			t.Errorf("by %q:\n%s", by, got)
		}
	}
}

func TestMetadataGoesWithItsRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	s := openAt(t, path)
	r := ended(aRun(1))
	r.Metadata = map[string]string{"user_id": "ada"}
	must(t, s.Insert(t.Context(), r, Key{}))
	r.Metadata = nil
	must(t, s.Save(t.Context(), r)) // which leaves it alone
	ada := Filter{Metadata: map[string]string{"user_id": "ada"}}
	if found := pages(t, s, Filter{Metadata: ada.Metadata, Limit: 5}); len(found) != 1 || found[0].ID != r.ID {
		t.Fatalf("found %+v", found)
	}
	must(t, s.Delete(t.Context(), r.ID))
	var left int
	must(t, raw(t, path).QueryRow("SELECT count(*) FROM metadata").Scan(&left))
	if left != 0 {
		t.Errorf("%d rows are left", left)
	}
}
