package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// limitPages makes the disk full when the file has n pages more than now; -1 lifts it.
func limitPages(t *testing.T, s *Store, more int) {
	t.Helper()
	var pages int
	must(t, s.core.writer.db.QueryRow("PRAGMA page_count").Scan(&pages))
	if more < 0 {
		more = 1 << 20
	}
	_, err := s.core.writer.db.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+more))
	must(t, err)
}

func TestAFullDiskIsAFaultOfThoseThatDoNotFit(t *testing.T) {
	s, small, big := open(t), aRun(1), aRun(2)
	big.Input = make([]byte, 1<<20)
	limitPages(t, s, 20)
	results := doAtOnce(t, s,
		func() error { return s.Runs.Insert(t.Context(), small, Key{}, event("a")) },
		func() error { return s.Runs.Insert(t.Context(), big, Key{}, event("a")) },
		func() error { return s.Events.Append(t.Context(), small.ID, event("b")) },
	)
	must(t, results[0])
	wantKind(t, results[1], fault.Unavailable)
	must(t, results[2])
	if public := fault.Public(results[1]); !strings.Contains(public.Msg, "full") || public.Hint == "" {
		t.Errorf("it says %q, %q", public.Msg, public.Hint)
	}
	if got := events(t, s, small.ID); len(got) != 2 {
		t.Errorf("%d events", len(got))
	}
	_, err := s.Runs.Get(t.Context(), big.ID)
	wantKind(t, err, fault.NotFound)

	limitPages(t, s, -1)
	must(t, s.Runs.Insert(t.Context(), big, Key{}))
}

func TestAnotherProcessThatWritesForTooLongIsAFault(t *testing.T) {
	s := open(t)
	var path string
	must(t, s.core.readers.QueryRow("SELECT file FROM pragma_database_list").Scan(&path))
	_, err := s.core.writer.db.Exec("PRAGMA busy_timeout = 20")
	must(t, err)
	other := raw(t, path+"?_txlock=immediate")
	tx, err := other.Begin()
	must(t, err)
	wantKind(t, s.Runs.Insert(t.Context(), aRun(1), Key{}), fault.Unavailable)
	must(t, tx.Rollback())
	must(t, s.Runs.Insert(t.Context(), aRun(1), Key{}))
}
