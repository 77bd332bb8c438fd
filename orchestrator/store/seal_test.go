package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestASealedNumberLeadsBackInItsListAlone(t *testing.T) {
	s, given := aSeal(t), map[int64]bool{}
	taken := 0
	for seq := range int64(10_000) {
		number := s.number(inAudit, seq)
		if number < 0 || number >= 1<<53 || given[number] {
			t.Fatalf("%d became %d", seq, number)
		}
		given[number] = true
		if back, err := s.seq(inAudit, number); back != seq || err != nil {
			t.Fatalf("%d became %d, and then %d, %v", seq, number, back, err)
		}
		if _, err := s.seq(inFeed, number); err == nil {
			taken++
		}
		if _, err := s.seq(inAudit, seq); err == nil {
			taken++
		}
	}
	if taken > 100 { // 1 in 4096 is expected
		t.Errorf("%d numbers that weren't given out were taken", taken)
	}
	if back, err := s.seq(inAudit, s.number(inAudit, 1<<numberBits-1)); back != 1<<numberBits-1 || err != nil {
		t.Errorf("the largest becomes %d, %v", back, err)
	}
}

// From two numbers nobody tells how many lie between them, nor which came first.
func TestSealedNumbersAreInNoOrder(t *testing.T) {
	s, grow := aSeal(t), 0
	const all = 10_000
	for seq := range int64(all) {
		if s.number(inFeed, seq) < s.number(inFeed, seq+1) {
			grow++
		}
	}
	if grow < all*45/100 || grow > all*55/100 {
		t.Errorf("%d of %d are greater than the one before", grow, all)
	}
}

func FuzzSealedNumber(f *testing.F) {
	s := aSeal(f)
	for _, n := range []int64{0, 1, -1, 1 << 52, 1<<63 - 1, s.number(inFeed, 7)} {
		f.Add(n)
	}
	fuzzbound.Run(f, func(t *testing.T, number int64) {
		seq, err := s.seq(inFeed, number)
		if err != nil {
			wantKind(t, err, fault.Input)
			return
		}
		if again := s.number(inFeed, seq); again != number || seq < 0 {
			t.Errorf("%d is %d, which is %d", number, seq, again)
		}
	})
}

func TestWhatWasGivenOutLeadsOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	s := openAt(t, path)
	for _, id := range []string{"a", "b"} {
		must(t, s.Sessions.Insert(t.Context(), aSession(id)))
		must(t, s.Runs.Insert(t.Context(), aRun(len(id)), Key{}))
	}
	page, err := s.Runs.List(t.Context(), Filter{Limit: 1})
	must(t, err)
	newest, err := s.Sessions.List(t.Context(), SessionFilter{Limit: 1})
	must(t, err)
	next, change := s.Sessions.Behind(newest[0]), s.Feed.Sealed(3)
	must(t, s.Close())
	s = openAt(t, path)
	if rest, err := s.Sessions.List(t.Context(), SessionFilter{After: next}); len(rest) != 1 || err != nil {
		t.Errorf("sessions: %v, %v", rest, err)
	}
	if rest, err := s.Runs.List(t.Context(), Filter{Cursor: page.Next}); len(rest.Runs) != 1 || err != nil {
		t.Errorf("runs: %v, %v", rest, err)
	}
	if seq, err := s.Feed.Unsealed(change); seq != 3 || err != nil {
		t.Errorf("the change is %d, %v", seq, err)
	}
	if others := open(t); others.Feed.Sealed(3) == change {
		t.Error("two servers have one seal")
	}
	_, err = s.Sessions.List(t.Context(), SessionFilter{After: next + 1})
	wantKind(t, err, fault.Input)
}

func TestADatabaseThatCantBeReadHasASealAllTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "aod.db")
	must(t, os.WriteFile(path, nil, 0o600))
	s, err := Open(path, Options{NotEmpty: true})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	if seq, err := s.Feed.Unsealed(s.Feed.Sealed(7)); seq != 7 || err != nil {
		t.Errorf("%d, %v", seq, err)
	}
}
