package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAllWaysOfAGroupAreDoneInTurn(t *testing.T) {
	var done []string
	named := func(name string) *way {
		return &way{
			name:   name,
			do:     func(context.Context) error { done = append(done, name); return nil },
			settle: func(context.Context) error { done = append(done, name+" rests"); return nil },
		}
	}
	first := named("first")
	first.inside = &inside{name: "inside the first", took: func() time.Duration { return 25 * time.Millisecond }}
	g := group{ways: []*way{first, named("second")}, beside: []string{"second"}, notes: []func() string{func() string { return "Fine." }}}
	made, err := g.measure(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"first", "first rests", "second", "second rests", "second", "second rests", "first", "first rests"}; !slices.Equal(done, want) {
		t.Errorf("in this order: %q", done)
	}
	var names []string
	for _, row := range made.table.rows {
		names = append(names, row[0])
	}
	if want := []string{"first", "inside the first", "second"}; !slices.Equal(names, want) {
		t.Errorf("the rows are %q", names)
	}
	if diff := cmp.Diff([]string{"25.0", "25.0", "25.0"}, made.table.rows[1][1:4]); diff != "" {
		t.Error(diff)
	}
	if made.notes[0] != "1 turns." || made.notes[1] != "Fine." {
		t.Errorf("the notes are %q", made.notes)
	}

	t.Run("and one that fails ends them", func(t *testing.T) {
		broken := errors.New("no engine")
		g.ways[1].do = func(context.Context) error { return broken }
		if _, err := g.measure(t.Context(), 1); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

func TestQuantilesAndTargets(t *testing.T) {
	s := series{name: "ours"}
	for ms := 100; ms > 0; ms-- {
		s.times = append(s.times, time.Duration(ms)*time.Millisecond)
	}
	if got := []time.Duration{s.p50(), s.quantile(0.95), s.slowest()}; got[0] != 51*time.Millisecond || got[1] != 96*time.Millisecond || got[2] != 100*time.Millisecond {
		t.Errorf("p50, p95 and the slowest are %v", got)
	}
	theirs := series{name: "theirs", times: []time.Duration{102 * time.Millisecond}}
	all := []series{s, theirs}
	for _, c := range []struct {
		aim aim
		met bool
	}{
		{aim{of: "ours", ms: 51}, true},
		{aim{of: "ours", ms: 50}, false},
		{aim{of: "ours", beside: "theirs", ratio: 0.5}, true},
		{aim{of: "ours", beside: "theirs", ratio: 0.49}, false},
		{aim{of: "ours", beside: "nobody", ratio: 0.5}, false},
	} {
		if g := c.aim.goal(all); g.met() != c.met {
			t.Errorf("%+v: %+v", c.aim, g)
		}
	}
}
