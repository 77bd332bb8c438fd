package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// spoil overwrites bytes of a file.
func spoil(t testing.TB, path string, at int64, with string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte(with), at)
	must(t, err)
	must(t, f.Close())
}

// filled is a closed database with runs in it.
func filled(t testing.TB) (path string, runs []Run) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "aod.db")
	s, err := Open(path, Options{})
	must(t, err)
	for n := range 50 {
		runs = append(runs, aRun(n))
		must(t, s.Runs.Insert(t.Context(), runs[n], Key{}, event("a")))
	}
	must(t, s.Close())
	return path, runs
}

func TestADamagedDatabaseIsReadAndNotWritten(t *testing.T) {
	path, runs := filled(t)
	info, err := os.Stat(path)
	must(t, err)
	pages := make(map[int]bool) // by whether it was noticed
	readable := 0
	for page := int64(4096); page < info.Size(); page += 4096 {
		copied := filepath.Join(t.TempDir(), "aod.db")
		whole, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(copied, whole, 0o600))
		spoil(t, copied, page, strings.Repeat("x", 4096))
		before, err := os.ReadFile(copied)
		must(t, err)
		s := openAt(t, copied)
		pages[int(page)] = s.Damaged()
		if !s.Damaged() {
			t.Errorf("nothing is noticed of page %d", page/4096)
			continue
		}
		wantKind(t, s.Health(t.Context()), fault.Unavailable)
		wantKind(t, s.Runs.Insert(t.Context(), aRun(100), Key{}), fault.Unavailable)
		for _, r := range runs {
			if _, err := s.Runs.Get(t.Context(), r.ID); err == nil {
				readable++
			}
		}
		must(t, s.Close())
		after, err := os.ReadFile(copied)
		must(t, err)
		if !slices.Equal(before, after) {
			t.Errorf("page %d: the file was written to", page/4096)
		}
	}
	if readable < len(runs) {
		t.Errorf("of %d databases with one bad page only %d runs could be read", len(pages), readable)
	}
}

func TestAnEmptyFileIsDamageWhereThereWasContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	must(t, os.WriteFile(path, nil, 0o600))
	s, err := Open(path, Options{NotEmpty: true})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	if !s.Damaged() {
		t.Error("it counts as a new one")
	}
	wantKind(t, s.Runs.Insert(t.Context(), aRun(1), Key{}), fault.Unavailable)
}

func TestDamageThatIsMetLaterStays(t *testing.T) {
	s := open(t)
	for n := range 50 {
		must(t, s.Runs.Insert(t.Context(), aRun(n), Key{}))
	}
	must(t, s.Health(t.Context()))
	var path string
	must(t, s.core.readers.QueryRow("SELECT file FROM pragma_database_list").Scan(&path))
	_, err := s.core.writer.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	spoil(t, path, 4096, strings.Repeat("x", int(info.Size()-4096)))
	// The reader that a pool of several picks may have the pages of before in its memory.
	s.core.readers.SetMaxIdleConns(0)
	_, err = s.Runs.List(t.Context(), Filter{})
	wantKind(t, err, fault.Unavailable)
	wantKind(t, s.Health(t.Context()), fault.Unavailable)
	if !s.Damaged() {
		t.Error("it isn't damaged")
	}
}

func TestAFullDiskPassesWhenThereIsRoom(t *testing.T) {
	s, big := open(t), aRun(1)
	big.Input = make([]byte, 1<<20)
	limitPages(t, s, 1)
	wantKind(t, s.Runs.Insert(t.Context(), big, Key{}), fault.Unavailable)
	s.core.health.probed = time.Now().Add(time.Hour) // a try could find room for its one page
	wantKind(t, s.Health(t.Context()), fault.Unavailable)
	if s.Damaged() {
		t.Error("a full disk isn't damage")
	}
	limitPages(t, s, -1)
	s.core.health.probed = time.Time{}
	testkit.Eventually(t, "it is well again", func() bool { return s.Health(t.Context()) == nil })
	must(t, s.Runs.Insert(t.Context(), big, Key{}))
}

func TestTheGravestTroubleIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h health
		full, broken, damaged := damage("full"), damage("broken"), damage("damaged")
		h.note(sqlite3.SQLITE_BUSY, damage("busy"))
		if code, _ := h.last(); code != 0 || h.turn() {
			t.Errorf("a lock that is held is no trouble: %d", code)
		}
		h.note(sqlite3.SQLITE_IOERR, broken)
		h.note(sqlite3.SQLITE_FULL, full)
		if _, trouble := h.last(); !errors.Is(trouble, broken) {
			t.Errorf("it is %v", trouble)
		}
		if h.turn() {
			t.Error("it is tried again at once")
		}
		time.Sleep(probeEvery)
		if !h.turn() || h.turn() {
			t.Error("not exactly one may try again after a while")
		}
		h.passed(sqlite3.SQLITE_FULL)
		if _, trouble := h.last(); !errors.Is(trouble, broken) {
			t.Error("a full disk that passed took a graver trouble along")
		}
		h.passed(sqlite3.SQLITE_IOERR)
		if _, trouble := h.last(); trouble != nil {
			t.Error("it doesn't pass")
		}
		h.note(sqlite3.SQLITE_CORRUPT, damaged)
		time.Sleep(time.Hour)
		if h.turn() {
			t.Error("damage is thought to pass")
		}
	})
}

func TestASnapshotIsTheDatabaseAtOneMoment(t *testing.T) {
	s := open(t)
	var path string
	must(t, s.core.readers.QueryRow("SELECT file FROM pragma_database_list").Scan(&path))
	must(t, s.Runs.Insert(t.Context(), aRun(0), Key{Value: "k"}, event("a")))
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		n := 1
		for ; ; n++ {
			select {
			case <-stop:
				ended <- n
				return
			default:
			}
			if err := s.Runs.Insert(t.Context(), aRun(n), Key{}, event("a"), event("b")); err != nil {
				t.Error(err)
			}
		}
	}()
	to := filepath.Join(t.TempDir(), "copy.db")
	must(t, Snapshot(t.Context(), path, to))
	close(stop)
	all := <-ended
	copied := openAt(t, to)
	must(t, copied.Health(t.Context()))
	totals, err := copied.Runs.Totals(t.Context())
	must(t, err)
	var rows int64
	must(t, copied.core.readers.QueryRow("SELECT count(*) FROM runs").Scan(&rows))
	if totals.Runs < 1 || totals.Runs > int64(all) || rows != totals.Runs {
		t.Errorf("of %d runs it has %d, and counts %d", all, rows, totals.Runs)
	}
	if _, _, err := copied.Keys.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	healthy(t, to)
}

func TestASnapshotOfADamagedDatabaseIsAFault(t *testing.T) {
	path, _ := filled(t)
	spoil(t, path, 4096, strings.Repeat("x", 4096*4))
	wantKind(t, Snapshot(t.Context(), path, filepath.Join(t.TempDir(), "copy.db")), fault.Unavailable)
}
