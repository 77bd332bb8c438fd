package store

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUnfinishedIsWholeAndOldestFirst(t *testing.T) {
	s := open(t)
	var want []Run
	for n := range 5 {
		r := aRun(5 - n)
		want = append([]Run{r}, want...)
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
		must(t, s.Runs.Insert(t.Context(), ended(aRun(n)), Key{}))
	}
	got, err := s.Runs.Unfinished(t.Context())
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOldest(t *testing.T) {
	s := open(t)
	var ids []string
	for n := range 5 {
		r := ended(aRun(n))
		ids = append(ids, r.ID)
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
		must(t, s.Runs.Insert(t.Context(), aRun(n), Key{}))
	}
	at := func(n int) time.Time { return ended(aRun(n)).FinishedAt }
	seen := func(n int) Run { return Run{ID: ids[n], FinishedAt: at(n)} }
	cases := map[string]struct {
		old  Old
		want []string
	}{
		"all that are finished":       {Old{}, ids},
		"some of them":                {Old{Limit: 2}, ids[:2]},
		"before a time, not at it":    {Old{Before: at(3)}, ids[:3]},
		"before the first":            {Old{Before: at(0)}, nil},
		"after one":                   {Old{After: seen(1), Limit: 2}, ids[2:4]},
		"after the last one":          {Old{After: seen(4)}, nil},
		"after one that is removed":   {Old{After: Run{ID: "gone", FinishedAt: at(1)}}, ids[1:]},
		"before the year 9999":        {Old{Before: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, ids},
		"a limit that is no limit":    {Old{Limit: -1}, ids},
		"a limit beyond what is sane": {Old{Limit: math.MaxInt}, ids},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := s.Runs.Oldest(t.Context(), c.old)
			must(t, err)
			var found []string
			for _, r := range got {
				found = append(found, r.ID)
				if r.Record != nil || r.Private != nil || r.Input != nil || r.FinishedAt.IsZero() {
					t.Errorf("%+v", r)
				}
			}
			if diff := cmp.Diff(c.want, found); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKnownOfMany(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	ids := []string{"", "'", "\x00", "\xff", "null"}
	for range 20_000 {
		ids = append(ids, newID())
	}
	known, err := s.Runs.Known(t.Context(), append(ids, r.ID))
	must(t, err)
	if diff := cmp.Diff(map[string]bool{r.ID: true}, known); diff != "" {
		t.Error(diff)
	}
	known, err = s.Runs.Known(t.Context(), nil)
	must(t, err)
	if len(known) != 0 {
		t.Errorf("of none there are %v", known)
	}
}

func TestTotalsFollowEveryWrite(t *testing.T) {
	s, a, b := open(t), aRun(1), aRun(2)
	check := func(want Totals) {
		t.Helper()
		got, err := s.Runs.Totals(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	check(Totals{})
	must(t, s.Runs.Insert(t.Context(), a, Key{}))
	must(t, s.Runs.Insert(t.Context(), b, Key{}))
	check(Totals{Runs: 2, Unfinished: 2, DiskBytes: 14})
	a = ended(a)
	a.DiskBytes = 100
	must(t, s.Runs.Save(t.Context(), a))
	check(Totals{Runs: 2, Unfinished: 1, DiskBytes: 107})
	a.DiskBytes = 1
	must(t, s.Runs.Save(t.Context(), a))
	must(t, s.Runs.Insert(t.Context(), ended(aRun(3)), Key{}))
	check(Totals{Runs: 3, Unfinished: 1, DiskBytes: 15})
	must(t, s.Runs.Delete(t.Context(), a.ID))
	check(Totals{Runs: 2, Unfinished: 1, DiskBytes: 14})
}
