package store

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestARunComesBackAsItWasStored(t *testing.T) {
	cases := map[string]func(*Run){
		"one that goes on":                    func(*Run) {},
		"one with a parent":                   func(r *Run) { r.Parent, r.Root = newID(), newID() },
		"one that has ended, with its output": func(r *Run) { *r = ended(*r); r.Output = []byte(`{"out":1}`) },
		"one without documents":               func(r *Run) { r.Record, r.Private, r.Input = nil, nil, nil },
		"names with anything in them":         func(r *Run) { r.Unit, r.Kind = "a'b\x00\";--", "é\xff" },
		"a time before 1970":                  func(r *Run) { r.CreatedAt = time.Unix(-5, 17).UTC() },
		"large documents":                     func(r *Run) { r.Input, r.Output = make([]byte, 200<<10), make([]byte, 200<<10) },
	}
	s := open(t)
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			want := aRun(1)
			change(&want)
			must(t, s.Runs.Insert(t.Context(), want, Key{}))
			got, err := s.Runs.Get(t.Context(), want.ID)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSave(t *testing.T) {
	t.Run("writes what may change and nothing else", func(t *testing.T) {
		s, first := open(t), aRun(1)
		must(t, s.Runs.Insert(t.Context(), first, Key{}))
		second := ended(aRun(2))
		second.ID, second.Unit, second.Parent, second.DiskBytes = first.ID, "other", "x", 99
		second.Output = []byte(`{"out":1}`)
		must(t, s.Runs.Save(t.Context(), second))
		want := second
		want.Unit, want.Parent, want.Root, want.CreatedAt, want.Input = first.Unit, first.Parent, first.Root, first.CreatedAt, first.Input
		got, err := s.Runs.Get(t.Context(), first.ID)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("without an output leaves the one that is there", func(t *testing.T) {
		s, r := open(t), aRun(1)
		r.Output = []byte(`{"out":1}`)
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
		r.Output = nil
		must(t, s.Runs.Save(t.Context(), r))
		got, err := s.Runs.Get(t.Context(), r.ID)
		must(t, err)
		if string(got.Output) != `{"out":1}` {
			t.Errorf("the output is %q", got.Output)
		}
	})
	t.Run("of a run that isn't there stores no event", func(t *testing.T) {
		s, r := open(t), aRun(1)
		wantKind(t, s.Runs.Save(t.Context(), r, event("x")), fault.NotFound)
		wantKind(t, s.Events.Append(t.Context(), r.ID, event("x")), fault.NotFound)
		if got := events(t, s, r.ID); got != nil {
			t.Errorf("there are events: %v", got)
		}
	})
}

func TestEventsAreNumberedInTheOrderOfTheCalls(t *testing.T) {
	s, r, other := open(t), aRun(1), aRun(2)
	must(t, s.Runs.Insert(t.Context(), r, Key{}, event("a"), event("b")))
	must(t, s.Runs.Insert(t.Context(), other, Key{}, event("z")))
	must(t, s.Runs.Save(t.Context(), r, event("c")))
	must(t, s.Events.Append(t.Context(), r.ID, event("d"), event("e")))
	must(t, s.Events.Append(t.Context(), r.ID))
	got := events(t, s, r.ID)
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, types(got)); diff != "" {
		t.Error(diff)
	}
	want := event("d")
	want.Seq = 4
	some, err := s.Events.List(t.Context(), r.ID, 3, 1)
	must(t, err)
	if diff := cmp.Diff([]Event{want}, some); diff != "" {
		t.Error(diff)
	}
}

func TestEventsAreNeverMoreThanAThousandAtOnce(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}, make([]Event, 1500)...))
	for _, limit := range []int{-1, 0, 1001, math.MaxInt} {
		got, err := s.Events.List(t.Context(), r.ID, 0, limit)
		must(t, err)
		if len(got) != 1000 {
			t.Errorf("limit %d gave %d", limit, len(got))
		}
	}
	if got := events(t, s, r.ID); len(got) != 1500 {
		t.Errorf("there are %d", len(got))
	}
}

func TestAKeyIsTakenOnce(t *testing.T) {
	s, first, second := open(t), aRun(1), aRun(2)
	key := Key{Value: "k", Fingerprint: "f1"}
	must(t, s.Runs.Insert(t.Context(), first, key))
	err := s.Runs.Insert(t.Context(), second, Key{Value: "k", Fingerprint: "f2"}, event("x"))
	var taken *Taken
	if !errors.As(err, &taken) {
		t.Fatalf("the error is %v", err)
	}
	if diff := cmp.Diff(&Taken{Run: first.ID, Fingerprint: "f1"}, taken); diff != "" {
		t.Error(diff)
	}
	_, err = s.Runs.Get(t.Context(), second.ID)
	wantKind(t, err, fault.NotFound)

	run, fingerprint, err := s.Keys.Get(t.Context(), "k")
	must(t, err)
	if run != first.ID || fingerprint != "f1" {
		t.Errorf("the key belongs to %s, %s", run, fingerprint)
	}
	_, _, err = s.Keys.Get(t.Context(), "other")
	wantKind(t, err, fault.NotFound)
	must(t, s.Runs.Insert(t.Context(), second, Key{}))
	must(t, s.Runs.Insert(t.Context(), aRun(3), Key{})) // no key isn't a key that could be taken
}

func TestInsertRefuses(t *testing.T) {
	s, r := open(t), aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}))
	wantKind(t, s.Runs.Insert(t.Context(), r, Key{Value: "k"}), fault.Conflict)
	_, _, err := s.Keys.Get(t.Context(), "k")
	wantKind(t, err, fault.NotFound)
	wantKind(t, s.Runs.Insert(t.Context(), aRun(2), Key{Value: strings.Repeat("x", maxKey+1)}), fault.Input)
	for _, bad := range []Run{{CreatedAt: epoch}, {ID: "x"}} {
		if s.Runs.Insert(t.Context(), bad, Key{}) == nil {
			t.Errorf("%+v was stored", bad)
		}
	}
}

func TestDelete(t *testing.T) {
	t.Run("takes everything of a run with it", func(t *testing.T) {
		s, r, other := open(t), ended(aRun(1)), ended(aRun(2))
		r.Output = []byte("{}")
		must(t, s.Runs.Insert(t.Context(), r, Key{Value: "k"}, event("a")))
		must(t, s.Runs.Insert(t.Context(), other, Key{Value: "k2"}, event("a")))
		must(t, s.Runs.Delete(t.Context(), r.ID, newID(), "\xff"))
		must(t, s.Runs.Delete(t.Context()))
		_, err := s.Runs.Get(t.Context(), r.ID)
		wantKind(t, err, fault.NotFound)
		_, _, err = s.Keys.Get(t.Context(), "k")
		wantKind(t, err, fault.NotFound)
		for table, want := range map[string]int{"runs": 1, "inputs": 1, "outputs": 0, "events": 1, "keys": 1} {
			var got int
			must(t, s.core.readers.QueryRow("SELECT count(*) FROM "+table).Scan(&got))
			if got != want {
				t.Errorf("%d rows are left in %s", got, table)
			}
		}
		must(t, s.Runs.Insert(t.Context(), aRun(3), Key{Value: "k"})) // the key is free again
	})
	t.Run("of a run that goes on removes none", func(t *testing.T) {
		s, over, open := open(t), ended(aRun(1)), aRun(2)
		must(t, s.Runs.Insert(t.Context(), over, Key{}))
		must(t, s.Runs.Insert(t.Context(), open, Key{}))
		wantKind(t, s.Runs.Delete(t.Context(), over.ID, open.ID), fault.Conflict)
		known, err := s.Runs.Known(t.Context(), []string{over.ID, open.ID, newID()})
		must(t, err)
		if diff := cmp.Diff(map[string]bool{over.ID: true, open.ID: true}, known); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAReadEndsWithItsContext(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Runs.List(ctx, Filter{})
	wantKind(t, err, fault.Cancelled)
	_, err = s.Runs.Get(ctx, "x")
	wantKind(t, err, fault.Cancelled)
}

func TestAClosedStore(t *testing.T) {
	s := open(t)
	must(t, s.Close())
	must(t, s.Close())
	calls := map[string]func() error{
		"Insert": func() error { return s.Runs.Insert(t.Context(), aRun(1), Key{}) },
		"Save":   func() error { return s.Runs.Save(t.Context(), aRun(1)) },
		"Append": func() error { return s.Events.Append(t.Context(), "x") },
		"Delete": func() error { return s.Runs.Delete(t.Context(), "x") },
		"Run":    func() error { _, err := s.Runs.Get(t.Context(), "x"); return err },
		"Runs":   func() error { _, err := s.Runs.List(t.Context(), Filter{}); return err },
		"Totals": func() error { _, err := s.Runs.Totals(t.Context()); return err },
	}
	for name, call := range calls {
		t.Run(name+" says so", func(t *testing.T) { wantKind(t, call(), fault.Unavailable) })
	}
}
