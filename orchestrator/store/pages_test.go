package store

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// grown stores runs with 10 KB each, and returns their ids.
func grown(t *testing.T, s *Store, n int) (ids []string) {
	t.Helper()
	for i := range n {
		r := ended(aRun(i))
		r.Record = fmt.Appendf(nil, `"%010000d"`, i)
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
		ids = append(ids, r.ID)
	}
	return ids
}

func usedBy(t *testing.T, s *Store) pageUse {
	t.Helper()
	p, err := pagesIn(t.Context(), s.core.readers)
	must(t, err)
	return p
}

// wantGiven wants the room of all but one of some runs to be given back, and that one to be whole.
func wantGiven(t *testing.T, s *Store, ids []string) {
	t.Helper()
	before := usedBy(t, s)
	must(t, s.Runs.Delete(t.Context(), ids[1:]...))
	bytes, err := s.GiveBack(t.Context())
	after := usedBy(t, s)
	if err != nil || bytes < int64(len(ids)-2)*10_000 || after.free != 0 || (before.all-after.all)*after.size != bytes {
		t.Errorf("%d bytes were given back, %v: %+v, before %+v", bytes, err, after, before)
	}
	r, err := s.Runs.Get(t.Context(), ids[0])
	if err != nil || string(r.Record) != fmt.Sprintf(`"%010000d"`, 0) {
		t.Errorf("of the run that stays: %v, %d bytes", err, len(r.Record))
	}
	must(t, thoroughly(s.core.logger).of(t.Context(), s.core.readers))
	if bytes, err := s.GiveBack(t.Context()); bytes != 0 || err != nil {
		t.Errorf("once more: %d, %v", bytes, err)
	}
}

func TestADatabaseGivesTheRoomOfWhatIsRemovedBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	s, err := Open(path, Options{})
	must(t, err)
	wantGiven(t, s, grown(t, s, 200))
	must(t, s.Close())
	if info, err := os.Stat(path); err != nil || info.Size() > 1<<20 {
		t.Errorf("its file: %d bytes, %v", info.Size(), err)
	}
}

// older is a database that was made by an older AOD, and gives nothing back, with some runs.
func older(t *testing.T) (s *Store, log *testkit.Log, ids []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "aod.db")
	makeTen(t, path)
	log = &testkit.Log{}
	s, err := Open(path, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	ids = grown(t, s, 50)
	if bytes, err := s.GiveBack(t.Context()); bytes != 0 || err != nil || usedBy(t, s).mode != 0 {
		t.Fatalf("it gives %d bytes back already, %v", bytes, err)
	}
	return s, log, ids
}

func TestADatabaseOfAnOlderVersionIsCompactedOnce(t *testing.T) {
	s, log, ids := older(t)
	for range 2 {
		s.Compact(t.Context(), 1<<40)
	}
	if n := strings.Count(log.String(), "database compacted"); n != 1 {
		t.Errorf("%d times: %s", n, log)
	}
	wantGiven(t, s, ids)
}

func TestADatabaseStaysAsItIsWhereItCannotBeCompacted(t *testing.T) {
	for name, c := range map[string]struct {
		over bool
		free int64
	}{"without room for a copy": {false, 500_000}, "when that is broken off": {true, 1 << 40}} {
		t.Run(name, func(t *testing.T) {
			s, log, ids := older(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.over {
				cancel()
			}
			s.Compact(ctx, c.free)
			if usedBy(t, s).mode != 0 || !strings.Contains(log.String(), "not compacted") {
				t.Error(log)
			}
			known, err := s.Runs.Known(t.Context(), ids)
			if err != nil || len(known) != len(ids) || s.Health(t.Context()) != nil {
				t.Errorf("%d of %d runs are left, %v, %v", len(known), len(ids), err, s.Health(t.Context()))
			}
		})
	}
}

func TestDocumentsOfARunHaveASize(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}, Event{At: epoch, Type: "artifact", Data: bytes.Repeat([]byte("1"), 5000)}))
	must(t, s.Steps.Keep(t.Context(), r.ID, Step{Address: "a", State: "done", Value: bytes.Repeat([]byte("2"), 300)}))
	if n, err := s.Runs.DocumentBytes(t.Context(), r.ID); n != 5300 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := s.Runs.DocumentBytes(t.Context(), "none"); n != 0 || err != nil {
		t.Errorf("of an unknown run: %d bytes, %v", n, err)
	}
}
