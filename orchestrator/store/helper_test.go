package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// The test binary is its own other process: see crash_test.go.
func TestMain(m *testing.M) {
	if os.Getenv("AOD_STORE_CHILD") != "" {
		child()
		return
	}
	testkit.NoLeaks(m)
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)

func open(t testing.TB) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "aod.db"))
}

func openAt(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("the error is %v (%s), want kind %s", err, fault.KindOf(err), kind)
	}
}

// newID returns a UUID v7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// aRun is a run with something in every field that one which goes on has.
func aRun(n int) Run {
	id := newID()
	return Run{
		ID: id, Unit: "hello", Kind: "capsule", Root: id, Team: "default", State: "running", Step: "a", ErrorKind: "b",
		CreatedAt: epoch.Add(time.Duration(n) * time.Second), StartedAt: epoch.Add(time.Hour), Tokens: 12, Cost: 34,
		DiskBytes: 7, Record: fmt.Appendf(nil, `{"n":%d}`, n), Private: []byte(`{"p":1}`), Input: []byte(`{"in":1}`),
	}
}

// ended returns the run as one that is over.
func ended(r Run) Run {
	r.State, r.Finished, r.FinishedAt = "completed", true, r.CreatedAt.Add(time.Minute)
	r.Outcome, r.ErrorKind, r.StartedAt, r.Tokens, r.Cost = "success", "", epoch.Add(2*time.Hour), 120, 340
	return r
}

func event(kind string) Event {
	return Event{At: epoch, Type: kind, Data: []byte(`{"type":"` + kind + `"}`)}
}

// events returns all events of a run and fails unless they are 1, 2, 3, ...
func events(t testing.TB, s *Store, run string) []Event {
	t.Helper()
	var all []Event
	for {
		some, err := s.Events.List(t.Context(), run, int64(len(all)), 0)
		must(t, err)
		if len(some) == 0 {
			return all
		}
		for _, e := range some {
			all = append(all, e)
			if e.Seq != int64(len(all)) {
				t.Fatalf("event %d of %s has the number %d", len(all), run, e.Seq)
			}
		}
	}
}

func types(events []Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}
