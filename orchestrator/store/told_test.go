package store

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestWhatIsToldIsReadByItsType(t *testing.T) {
	s := open(t)
	r := aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}, event("state"), event("message")))
	must(t, s.Events.Append(t.Context(), r.ID, event("artifact"), event("progress"), event("message"), event("attempt")))
	for kind, want := range map[string][]int64{"message": {2, 5}, "artifact": {3}, "attempt": {6}} {
		found, err := s.Events.Told(t.Context(), r.ID, kind, 0, 0)
		must(t, err)
		var got []int64
		for _, e := range found {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	found, err := s.Events.Told(t.Context(), r.ID, "message", 2, 1)
	must(t, err)
	if len(found) != 1 || found[0].Seq != 5 {
		t.Errorf("after 2: %+v", found)
	}
	if _, err := s.Events.Told(t.Context(), r.ID, "state", 0, 0); err == nil {
		t.Error("events without an index are read")
	}
}

func TestWhatIsAppendedOnceIsThereOnce(t *testing.T) {
	s := open(t)
	r, other := aRun(1), aRun(2)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	must(t, s.Runs.Insert(t.Context(), other, Key{}))
	key := Key{Value: "say/k", Fingerprint: "f"}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := s.Events.AppendOnce(t.Context(), key, r.ID, event("message")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := events(t, s, r.ID); len(got) != 1 {
		t.Errorf("there are %d events", len(got))
	}
	var taken *Taken
	if _, err := s.Events.AppendOnce(t.Context(), Key{Value: "say/k", Fingerprint: "g"}, r.ID, event("message")); !errors.As(err, &taken) {
		t.Errorf("another fingerprint: %v", err)
	}
	if _, err := s.Events.AppendOnce(t.Context(), key, other.ID, event("message")); !errors.As(err, &taken) {
		t.Errorf("another run: %v", err)
	}
	_, err := s.Events.AppendOnce(t.Context(), key, "nobody", event("message"))
	wantKind(t, err, fault.NotFound)
}

func TestKeysAreDropped(t *testing.T) {
	s := open(t)
	r := aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{Value: "resend/u/d", Fingerprint: "d"}))
	must(t, s.Keys.Point(t.Context(), Key{Value: "client/k"}, r.ID))
	for _, want := range []int64{1, 0} {
		if n, err := s.Keys.Drop(t.Context(), r.ID, "resend/"); err != nil || n != want {
			t.Errorf("%d dropped, want %d: %v", n, want, err)
		}
	}
	if _, _, err := s.Keys.Get(t.Context(), "client/k"); err != nil {
		t.Errorf("another key is gone: %v", err)
	}
	again := aRun(2)
	must(t, s.Runs.Insert(t.Context(), again, Key{Value: "resend/u/d", Fingerprint: "d"}))
}
