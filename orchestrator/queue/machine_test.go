package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARunBeginsWhereItMay(t *testing.T) {
	t.Parallel()
	files := func(machine string) int { return map[string]int{"b": 1}[machine] } // that it needs
	for name, c := range map[string]struct {
		change func(q *Queue)
		run    Run
		want   string
		waits  Reason // "": it begins
	}{
		"at the server itself, of equals":           {nil, Run{}, Local, ""},
		"where most slots are free":                 {func(q *Queue) { q.Occupy(Run{Unit: "x"}) }, Run{}, "a", ""},
		"where it rather is":                        {nil, Run{Rank: files}, "b", ""},
		"elsewhere, where that has no slot":         {func(q *Queue) { q.SetMachine("b", Machine{}) }, Run{Rank: files}, Local, ""},
		"where there is what it needs":              {nil, Run{Needs: []string{"gpu", "big"}}, "c", ""},
		"nowhere, where nobody has that":            {nil, Run{Needs: []string{"tpu"}}, "", ForMachine},
		"nowhere, where that takes nothing new":     {func(q *Queue) { q.SetMachine("c", Machine{Slots: 2, Labels: []string{"gpu"}, Closed: true}) }, Run{Needs: []string{"gpu"}}, "", ForMachine},
		"nowhere, where that is gone":               {func(q *Queue) { q.RemoveMachine("c") }, Run{Needs: []string{"gpu"}}, "", ForMachine},
		"nowhere, where that has no slot":           {func(q *Queue) { q.SetMachine("c", Machine{Labels: []string{"gpu"}}) }, Run{Needs: []string{"gpu"}}, "", ForSlot},
		"where there is memory":                     {func(q *Queue) { q.Occupy(Run{Unit: "x", Bytes: 5, Machine: "b"}) }, Run{Bytes: 6, Rank: files}, Local, ""},
		"beyond the memory, where nobody has begun": {nil, Run{Bytes: 90, Rank: files}, "b", ""},
		"at the server itself, without a slot":      {func(q *Queue) { q.SetMachine(Local, Machine{}) }, Run{Slotless: true, Rank: files}, Local, ""},
		"where it was, after a restart, no matter what": {
			func(q *Queue) { q.SetMachine("c", Machine{Closed: true}) }, Run{Machine: "c"}, "c", "",
		},
		"at the server itself, where its machine is unknown": {nil, Run{Machine: "z"}, Local, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := New(2)
			q.SetMachine("a", Machine{Slots: 2})
			q.SetMachine("b", Machine{Slots: 2, Memory: 10})
			q.SetMachine("c", Machine{Slots: 2, Labels: []string{"big", "gpu"}})
			if c.change != nil {
				c.change(q)
			}
			c.run.Unit, c.run.ID = "u", "id"
			var p *Permit
			if c.run.Machine != "" {
				p = q.Occupy(c.run)
			} else {
				p = q.Reenter(c.run)
			}
			place, waits := q.PlaceOf("u", "id")
			if waits != (c.waits != "") || place.Reason != c.waits || p.Machine() != c.want {
				t.Errorf("it waits %v for %q, at %q", waits, place.Reason, p.Machine())
			}
		})
	}
}

// A run that needs what nobody has keeps nobody back, and begins when a machine comes that has it.
func TestWhatWaitsForAMachineKeepsNobodyBack(t *testing.T) {
	t.Parallel()
	q := New(1)
	q.Reenter(Run{ID: "g", Unit: "g", Needs: []string{"gpu"}})
	if place, waits := q.PlaceOf("g", "g"); !waits || place.Slots != 0 {
		t.Errorf("it waits %v: %+v", waits, place)
	}
	q.Reenter(Run{ID: "a", Unit: "a"})
	if _, waits := q.PlaceOf("a", "a"); waits {
		t.Error("another one waits behind it")
	}
	q.SetMachine("w", Machine{Slots: 1, Labels: []string{"gpu"}})
	if _, waits := q.PlaceOf("g", "g"); waits {
		t.Error("it waits on")
	}
}

// A slot that is lent comes back on the same machine, also on one that takes nothing new, and from one that is gone
// never.
func TestALentSlotComesBackWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1)
		q.SetMachine("w", Machine{Slots: 1})
		w := q.Reenter(Run{Unit: "a", ID: "a1", Rank: func(m string) int { return len(m) }})
		y := NewYield(w)
		begin := func(name string) *Permit { return q.Reenter(Run{Unit: "b", ID: name}) }
		at := func(when string, want map[string]string, permits map[string]*Permit) {
			t.Helper()
			got := map[string]string{}
			for name, p := range permits {
				if _, waits := q.PlaceOf("b", name); !waits {
					got[name] = p.Machine()
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		called, over := make(chan struct{}), make(chan bool)
		go func() {
			y.Await(t.Context(), func() { <-called })
			over <- y.Regain(t.Context())
		}()
		synctest.Wait()
		all := map[string]*Permit{"b1": begin("b1"), "b2": begin("b2"), "b3": begin("b3")}
		at("lent", map[string]string{"b1": Local, "b2": "w"}, all)
		close(called)
		synctest.Wait()
		all["b1"].Leave() // another machine's slot is no help to it
		at("elsewhere one is free", map[string]string{"b1": Local, "b2": "w", "b3": Local}, all)
		q.SetMachine("w", Machine{Slots: 1, Closed: true})
		all["b2"].Leave()
		if !<-over || w.Machine() != "w" {
			t.Errorf("it is at %q", w.Machine())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.suspend(); err != nil {
			t.Error(err)
		}
		q.RemoveMachine("w")
		if w.resume(ctx) == nil {
			t.Error("it has a slot of a machine that is gone")
		}
		for _, p := range append([]*Permit{w}, all["b1"], all["b2"], all["b3"]) {
			p.Leave()
		}
		if running, waiting := q.Counts(); running != 0 || len(waiting) != 0 || len(q.units) != 0 {
			t.Errorf("left: %d, %v, %v", running, waiting, q.units)
		}
	})
}

// Runs that call runs, over three machines of two slots and hardly any memory: none waits for itself, and nothing is
// left of them.
func TestCallsOverMachinesNeverWaitForThemselves(t *testing.T) {
	t.Parallel()
	const trees, depth = 300, 4
	q := New(0)
	machines := []string{"a", "b", "c"}
	labels := map[string][]string{"a": {"x"}, "b": {"x", "y"}, "c": {"y"}}
	for _, name := range machines {
		q.SetMachine(name, Machine{Slots: 2, Memory: 25, Labels: labels[name]})
	}
	var run func(ctx context.Context, random *rand.Rand, left int) error
	run = func(ctx context.Context, random *rand.Rand, left int) error {
		r := Run{Unit: fmt.Sprint("u", left, random.IntN(3)), Team: fmt.Sprint("t", random.IntN(3)), Bytes: int64(5 + random.IntN(15))}
		switch random.IntN(4) {
		case 0:
			r.Needs = []string{"x"}
		case 1:
			r.Needs = []string{"y"}
		case 2:
			near := machines[random.IntN(3)]
			r.Rank = func(m string) int { return map[bool]int{true: 1}[m == near] }
		}
		p := q.Reenter(r)
		defer p.Leave()
		if err := p.Wait(ctx); err != nil {
			return fmt.Errorf("a run at depth %d didn't begin: %w", left, err)
		}
		if left == 0 {
			return nil
		}
		y := NewYield(p)
		for range 1 + random.IntN(2) {
			var err error
			y.Await(ctx, func() { err = run(ctx, random, left-1) })
			if err != nil {
				return err
			}
			if !y.Regain(ctx) {
				return fmt.Errorf("a run at depth %d didn't get its slot back", left)
			}
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for n := range trees {
		all.Go(func() {
			if err := run(ctx, rand.New(rand.NewPCG(7, uint64(n))), depth); err != nil {
				t.Error(n, err)
			}
		})
	}
	all.Wait()
	for _, m := range q.machines {
		if m.running != 0 || m.used != 0 || len(m.back) != 0 {
			t.Errorf("%q is left with %d runs, %d bytes, %d that wait", m.name, m.running, m.used, len(m.back))
		}
	}
	if len(q.units)+len(q.teams)+len(q.turn) != 0 || q.patience != (patience{}) {
		t.Errorf("left: %v, %v, %v", q.units, q.teams, q.patience)
	}
}

// A large run is passed by so many small ones, wherever it may begin; then a machine is kept for it, and no other one.
func TestMachinesAreKeptForALargeRunAlone(t *testing.T) {
	t.Parallel()
	q := New(0)
	q.SetMachine("a", Machine{Slots: 9, Memory: 100, Labels: []string{"x"}})
	q.SetMachine("b", Machine{Slots: 9, Memory: 100})
	begun := func(id string) bool { _, waits := q.PlaceOf("s", id); return !waits }
	hold := q.Reenter(Run{ID: "hold", Unit: "s", Bytes: 50, Needs: []string{"x"}})
	large := q.Reenter(Run{ID: "large", Unit: "l", Bytes: 80, Needs: []string{"x"}})
	for n := range inARow {
		p := q.Reenter(Run{ID: fmt.Sprint("s", n), Unit: "s", Bytes: 50})
		if !begun(fmt.Sprint("s", n)) {
			t.Fatalf("the %dth waits", n)
		}
		p.Leave()
	}
	beside := q.Reenter(Run{ID: "beside", Unit: "s", Bytes: 50, Rank: func(m string) int { return map[string]int{"a": 1}[m] }})
	if !begun("beside") || beside.Machine() != "b" {
		t.Errorf("one begins at %q", beside.Machine())
	}
	behind := q.Reenter(Run{ID: "behind", Unit: "s", Bytes: 1, Needs: []string{"x"}})
	if begun("behind") {
		t.Errorf("one begins at %q, which is kept", behind.Machine())
	}
	hold.Leave()
	if _, waits := q.PlaceOf("l", "large"); waits || large.Machine() != "a" || !begun("behind") {
		t.Errorf("the large one waits %v, at %q", waits, large.Machine())
	}
}

func TestDemandIsWhatWaitsForMachines(t *testing.T) {
	t.Parallel()
	q := New(1)
	q.SetBounds(map[string]Bounds{"bounded": {Slots: 1}}, nil)
	q.SetMachine("g", Machine{Slots: 2, Labels: []string{"gpu", "big"}})
	q.Occupy(Run{Unit: "x", Team: "bounded"})
	if all := q.Demand(); len(all) != 0 {
		t.Errorf("nobody waits: %+v", all)
	}
	for i, r := range []Run{
		{Unit: "gpus", Needs: []string{"gpu", "big"}},
		{Unit: "gpus", Needs: []string{"big", "gpu"}}, // which begin
		{Unit: "gpus", Needs: []string{"gpu", "big"}},
		{Unit: "more", Needs: []string{"big", "gpu"}},
		{Unit: "plain"},
		{Unit: "tpus", Needs: []string{"tpu"}},
		{Unit: "limited", Limit: 2},
		{Unit: "limited", Limit: 2},
		{Unit: "limited", Limit: 2},
		{Unit: "of-team", Team: "bounded"},
		{Unit: "waits", Slotless: true},
	} {
		r.ID = string(rune('a' + i))
		q.Reenter(r)
	}
	var got []Demand
	for _, d := range q.Demand() {
		if time.Since(d.Since) > time.Minute {
			t.Errorf("it waits since %v", d.Since)
		}
		d.Since = time.Time{}
		got = append(got, d)
	}
	want := []Demand{
		{Waiting: 3, Slots: 3, Running: 3},
		{Needs: []string{"big", "gpu"}, Waiting: 2, Slots: 2, Running: 2},
		{Needs: []string{"tpu"}, Waiting: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
