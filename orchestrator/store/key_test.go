package store

import (
	"slices"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestKeysByPrefix(t *testing.T) {
	s, err := Open(t.TempDir()+"/aod.db", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, key := range []string{"a/1", "a/2", "a", "ab", "b/1", "a/\u00ff"} {
		r := Run{ID: string(rune('p' + i)), Unit: "u", Root: "r", State: "idle", CreatedAt: time.Now(), Record: []byte("{}"), Private: []byte("{}"), Input: []byte("{}")}
		if err := s.Runs.Insert(t.Context(), r, Key{Value: key, Fingerprint: "f"}); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := s.Keys.List(t.Context(), "a/")
	if want := []string{"a/1", "a/2", "a/\u00ff"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("keys %q, %v, want %q", keys, err, want)
	}
}

func TestAKeyCanBePointedAtAnotherRun(t *testing.T) {
	s, err := Open(t.TempDir()+"/aod.db", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, id := range []string{"p", "q"} {
		r := Run{ID: id, Unit: "u", Root: "r", State: "idle", CreatedAt: time.Now(), Record: []byte("{}"), Private: []byte("{}")}
		if err := s.Runs.Insert(t.Context(), r, Key{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"p", "q", "q"} {
		err := s.Keys.Point(t.Context(), Key{Value: "cache/x", Fingerprint: "f"}, run)
		if got, _, found := s.Keys.Get(t.Context(), "cache/x"); err != nil || found != nil || got != run {
			t.Errorf("%s, %v, %v", got, err, found)
		}
	}
	if err := s.Keys.Point(t.Context(), Key{Value: "cache/x"}, "nobody"); !fault.Is(err, fault.NotFound) {
		t.Errorf("for no run: %v", err)
	}
}
