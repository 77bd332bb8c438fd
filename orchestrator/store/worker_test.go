package store

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWorkersAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aod.db")
	s := openAt(t, path)
	wants := func(want ...Worker) {
		t.Helper()
		got, err := s.Workers.List(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	wants()
	small, big := Worker{Name: "small"}, Worker{Name: "big", Drained: true, About: []byte(`{"slots":2}`), SeenAt: epoch}
	must(t, s.Workers.Save(t.Context(), small))
	must(t, s.Workers.Save(t.Context(), big))
	must(t, s.Workers.Save(t.Context(), big))
	wants(big, small)
	big.Drained, big.About, big.SeenAt = false, []byte(`{"slots":3}`), epoch.Add(time.Hour)
	must(t, s.Workers.Save(t.Context(), big))
	must(t, s.Workers.Remove(t.Context(), "small"))
	must(t, s.Workers.Remove(t.Context(), "small"))
	wants(big)
	copied := filepath.Join(t.TempDir(), "copy.db")
	must(t, Snapshot(t.Context(), path, copied)) // as a backup does
	s = openAt(t, copied)
	wants(big)
}

func TestADatabaseOfVersionFourteenHasNoWorkersYet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aod.db")
	s := openAt(t, path)
	must(t, s.Runs.Insert(t.Context(), aRun(1), Key{}))
	must(t, s.Close())
	rawExec(t, path, "DROP TABLE workers; PRAGMA user_version = 14")
	s = openAt(t, path)
	must(t, s.Workers.Save(t.Context(), Worker{Name: "big"}))
	workers, err := s.Workers.List(t.Context())
	must(t, err)
	totals, err := s.Runs.Totals(t.Context())
	must(t, err)
	if len(workers) != 1 || totals.Runs != 1 {
		t.Errorf("workers %+v, %+v", workers, totals)
	}
	healthy(t, path)
}
