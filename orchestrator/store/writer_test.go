package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// hold keeps the writer busy until the returned function is called.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- s.core.writer.do(context.Background(), func(context.Context, *transaction) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	return func() {
		t.Helper()
		close(end)
		must(t, <-done)
	}
}

// waitForWaiting returns when n writes wait behind the one that is held.
func waitForWaiting(t *testing.T, s *Store, n int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d writes wait", n), func() bool { return len(s.core.writer.waiting) >= n })
}

// doAtOnce has the writer find all changes waiting and returns what became of them.
func doAtOnce(t *testing.T, s *Store, changes ...func() error) []error {
	t.Helper()
	release := hold(t, s)
	results := make([]error, len(changes))
	var all sync.WaitGroup
	for i, change := range changes {
		all.Go(func() { results[i] = change() })
		waitForWaiting(t, s, i+1)
	}
	release()
	all.Wait()
	return results
}

func TestWaitingWritesShareATransaction(t *testing.T) {
	s := open(t)
	var seen []*transaction // only the writer appends
	var changes []func() error
	for range 10 {
		changes = append(changes, func() error {
			return s.core.writer.do(t.Context(), func(_ context.Context, tx *transaction) error {
				seen = append(seen, tx)
				return nil
			})
		})
	}
	doAtOnce(t, s, changes...)
	if len(seen) != 10 || len(slices.Compact(seen)) != 1 {
		t.Errorf("%d writes, not in one transaction", len(seen))
	}
}

func TestOneFailingWriteDoesNotFailItsNeighbours(t *testing.T) {
	s, there := open(t), aRun(0)
	must(t, s.Runs.Insert(t.Context(), there, Key{}))
	a, b := aRun(1), aRun(2)
	insert := func(r Run) func() error {
		return func() error { return s.Runs.Insert(t.Context(), r, Key{}, event("x")) }
	}
	halfway := func() error {
		return s.core.writer.do(t.Context(), func(ctx context.Context, tx *transaction) error {
			if _, err := tx.ExecContext(ctx, "DELETE FROM runs"); err != nil {
				return err
			}
			return fault.New(fault.Conflict, "after all not")
		})
	}
	results := doAtOnce(t, s, insert(a), insert(there), halfway, insert(b))
	must(t, results[0])
	wantKind(t, results[1], fault.Conflict)
	wantKind(t, results[2], fault.Conflict)
	must(t, results[3])
	known, err := s.Runs.Known(t.Context(), []string{there.ID, a.ID, b.ID})
	must(t, err)
	if len(known) != 3 || len(events(t, s, there.ID)) != 0 {
		t.Errorf("stored are %v", known)
	}
}

func TestAWriteThatHasNotBegunEndsWithItsContext(t *testing.T) {
	s, r := open(t), aRun(1)
	ctx, cancel := context.WithCancel(t.Context())
	release := hold(t, s)
	done := make(chan error)
	go func() { done <- s.Runs.Insert(ctx, r, Key{}) }()
	waitForWaiting(t, s, 1)
	cancel()
	wantKind(t, <-done, fault.Cancelled) // while the writer is still held
	release()
	must(t, s.Runs.Insert(t.Context(), aRun(2), Key{}))
	_, err := s.Runs.Get(t.Context(), r.ID)
	wantKind(t, err, fault.NotFound)
	wantKind(t, s.Runs.Insert(ctx, r, Key{}), fault.Cancelled)
}

func TestAWriteThatHasBegunIsWaitedFor(t *testing.T) {
	s, r := open(t), aRun(1)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.core.writer.do(ctx, func(inner context.Context, tx *transaction) error {
		cancel()
		return insert(inner, tx, r, Key{}, nil)
	})
	must(t, err)
	_, err = s.Runs.Get(t.Context(), r.ID)
	must(t, err)
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	release := hold(t, s)
	defer release()
	_, err := s.Runs.Get(t.Context(), r.ID)
	must(t, err)
	_, err = s.Runs.List(t.Context(), Filter{})
	must(t, err)
}

func TestReadersCanNotWrite(t *testing.T) {
	s := open(t)
	if _, err := s.core.readers.ExecContext(t.Context(), "DELETE FROM runs"); err == nil {
		t.Error("one did")
	}
}

func TestCloseWaitsForWhatHasBegunAndFailsTheRest(t *testing.T) {
	s, begun := open(t), aRun(0)
	started, end, first := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		first <- s.core.writer.do(context.Background(), func(ctx context.Context, tx *transaction) error {
			close(started)
			<-end
			return insert(ctx, tx, begun, Key{}, nil)
		})
	}()
	<-started
	rest := make(chan error)
	for n := range 5 {
		go func() { rest <- s.Runs.Insert(context.Background(), aRun(n), Key{}) }()
	}
	waitForWaiting(t, s, 5)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.core.writer.quit
	select {
	case <-closed:
		t.Fatal("Close did not wait")
	default:
	}
	close(end)
	must(t, <-first)
	for range 5 {
		wantKind(t, <-rest, fault.Unavailable)
	}
	must(t, <-closed)
}

func TestManyWritersLoseNothing(t *testing.T) {
	const goroutines, operations = 200, 20
	s, shared := open(t), aRun(0)
	must(t, s.Runs.Insert(t.Context(), shared, Key{}))
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			own := aRun(g)
			err := s.Runs.Insert(t.Context(), own, Key{Value: own.ID}, event("0"))
			for n := 1; n < operations; n++ {
				err = errors.Join(err,
					s.Runs.Save(t.Context(), own, event(fmt.Sprint(n))),
					s.Events.Append(t.Context(), shared.ID, event(fmt.Sprintf("%d/%d", g, n))))
			}
			if err != nil {
				t.Error(err)
			}
			for n, e := range events(t, s, own.ID) {
				if e.Type != fmt.Sprint(n) {
					t.Errorf("event %d of a run is %s", n, e.Type)
				}
			}
		})
	}
	all.Wait()
	next := make([]int, goroutines)
	got := events(t, s, shared.ID)
	for _, e := range got {
		var g, n int
		_, err := fmt.Sscanf(e.Type, "%d/%d", &g, &n)
		must(t, err)
		if next[g]++; n != next[g] {
			t.Fatalf("event %d of goroutine %d came as its %d.", n, g, next[g])
		}
	}
	totals, err := s.Runs.Totals(t.Context())
	must(t, err)
	if totals.Runs != goroutines+1 || len(got) != goroutines*(operations-1) {
		t.Errorf("%d runs, %d events", totals.Runs, len(got))
	}
}

func TestACommitReachesTheDisk(t *testing.T) {
	var synchronous, journal string
	s := open(t)
	must(t, s.core.writer.db.QueryRow("PRAGMA synchronous").Scan(&synchronous))
	must(t, s.core.writer.db.QueryRow("PRAGMA journal_mode").Scan(&journal))
	if synchronous != "2" || journal != "wal" { // 2 is FULL: no kill can show what a loss of power would
		t.Errorf("synchronous is %s, the journal %s", synchronous, journal)
	}
}
