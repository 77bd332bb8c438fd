package pool

import (
	"context"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
)

func TestARunGetsWhatHasWaitedLongest(t *testing.T) {
	y := newYard(t, map[string]int{"worker": 2}, Options{Size: 8})
	waiting := y.stocked("worker", 2).Waiting
	got := y.acquire("worker")
	if got == nil || got.ID != waiting[0].ID || got.Runtime.ID() != waiting[0].Container {
		t.Fatalf("%+v of %+v", got, waiting)
	}
	shelf := y.stocked("worker", 2)
	if shelf.Hits != 1 || shelf.Misses != 0 || shelf.Refills != 3 || shelf.Waiting[0].ID != waiting[1].ID {
		t.Errorf("%+v", shelf)
	}
	if !y.pool.Has(got.ID) || !y.pool.Has(waiting[1].ID) || y.pool.Has("another") {
		t.Error("it doesn't know what is its own, or its runs'")
	}
	if y.pool.Forget(got.ID); y.pool.Has(got.ID) {
		t.Error("it knows a sandbox that a run has done with")
	}
	y.pool.Claimed("of-an-earlier-process", got.ID)
	if !y.pool.Has("of-an-earlier-process") || !y.pool.Has(got.ID) {
		t.Error("it doesn't know what an earlier process gave to a run")
	}
	if n := len(y.pool.Waiting()); n != 2 {
		t.Errorf("%d wait", n)
	}
}

func TestARunGetsNothingThatIsNotForIt(t *testing.T) {
	t.Run("of another unit", func(t *testing.T) {
		y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
		y.stocked("worker", 1)
		if y.acquire("asker") != nil || y.shelf("asker").Misses != 1 || y.shelf("worker").Misses != 0 {
			t.Errorf("%+v", y.pool.Stats())
		}
	})
	for name, c := range map[string]struct {
		now *unit.Unit
		key string
	}{
		"of another version, which goes":                   {&unit.Unit{Name: "worker", Version: "2"}, "worker@2"},
		"of a directory where it was uploaded, which goes": {&unit.Unit{Name: "worker", Version: "1", Source: unit.FromUpload}, "worker@1@upload"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
			old := y.stocked("worker", 1).Waiting[0]
			y.set(func() { y.units["worker"] = c.now })
			if y.acquire("worker") != nil {
				t.Error("it got one of the old version")
			}
			y.within("one of the new version waits", func() bool {
				s := y.shelf("worker")
				return len(s.Waiting) == 1 && s.Waiting[0].ID != old.ID
			})
			if got := y.acquire("worker"); got == nil || got.Key != c.key {
				t.Errorf("%+v", got)
			}
			if len(y.containers(old.ID)) > 0 {
				t.Error("the old one is left")
			}
		})
	}
	t.Run("that is dead, which is replaced", func(t *testing.T) {
		y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
		dead := y.stocked("worker", 1).Waiting[0]
		all := y.pool.Waiting()
		if err := y.engine.Kill(t.Context(), dead.Container); err != nil {
			t.Fatal(err)
		}
		y.within("its end is known", func() bool { return !all[0].Ready() })
		if got := y.acquire("worker"); got != nil && got.ID == dead.ID {
			t.Error("it got a dead one")
		}
		y.within("another waits", func() bool {
			s := y.shelf("worker")
			return len(s.Waiting) == 1 && s.Waiting[0].ID != dead.ID
		})
	})
	t.Run("where there is no pool", func(t *testing.T) {
		p := New(nil, Options{}, nil)
		u := &unit.Unit{Name: "worker"}
		p.Learn(u, Observation{Asked: true})
		if p.Acquire(u) != nil || len(p.Stats().Units) > 0 {
			t.Errorf("%+v", p.Stats())
		}
	})
}

func TestAUnitThatIsGoneHasNothingWaiting(t *testing.T) {
	y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
	y.stocked("worker", 1)
	y.set(func() { delete(y.units, "worker") })
	y.survey()
	y.within("nothing waits", func() bool { return len(y.shelf("worker").Waiting)+len(y.containers(""))+len(y.dirs()) == 0 })
}

func TestAUnitThatWasCalledTwiceHasOneWaiting(t *testing.T) {
	y := newYard(t, nil, Options{Size: 8})
	y.acquire("worker")
	y.survey()
	if s := y.shelf("worker"); s.Wanted != 0 {
		t.Errorf("called once: %+v", s)
	}
	y.acquire("worker")
	y.within("one waits", func() bool { return len(y.shelf("worker").Waiting) > 0 })
	if s := y.shelf("asker"); s.Refills != 0 {
		t.Errorf("nobody called: %+v", s)
	}
}

func TestAProgramIsLoadedAheadUntilItIsSeenNotToAsk(t *testing.T) {
	y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
	first := y.stocked("worker", 1).Waiting[0]
	y.pool.Learn(y.unit("worker"), Observation{Asked: true})
	y.within("one was to be loaded, and another waits less far", func() bool {
		s := y.shelf("worker")
		return s.Failures == 1 && len(s.Waiting) == 1 && s.Waiting[0].ID != first.ID
	})
	y.pool.Learn(y.unit("worker"), Observation{Asked: true}) // a run's program did
	y.acquire("worker")
	y.within("another waits", func() bool { return y.shelf("worker").Refills == 3 })
	y.mu.Lock()
	defer y.mu.Unlock()
	if want := []bool{false, true, false, false}; len(y.asked) != len(want) || y.asked[1] != true || y.asked[2] || y.asked[3] {
		t.Errorf("loaded %v, want %v", y.asked, want)
	}
}

func TestASandboxComesBackWhereThereIsRoom(t *testing.T) {
	for _, c := range []struct {
		name   string
		opts   Options
		change func(y *yard, back *Sandbox)
		kept   bool
	}{
		{"into its place", Options{Size: 8}, func(*yard, *Sandbox) {}, true},
		{"but not beyond what its unit wants", Options{Size: 8}, func(y *yard, _ *Sandbox) { y.set(func() { y.wants = nil }); y.pool.survey(y.t.Context()) }, false},
		{"nor beyond the pool's size", Options{Size: 1}, func(y *yard, _ *Sandbox) {
			y.pool.mu.Lock()
			defer y.pool.mu.Unlock()
			y.pool.unit("asker").coming++
		}, false},
		{"nor beyond its memory", Options{Size: 8, MemoryBytes: guessedMemory}, func(y *yard, _ *Sandbox) {
			y.pool.mu.Lock()
			defer y.pool.mu.Unlock()
			y.pool.unit("worker").memory = 2 * guessedMemory
		}, false},
		{"nor when it is too old", Options{Size: 8, MaxAge: time.Hour}, func(_ *yard, back *Sandbox) { back.born = time.Now().Add(-2 * time.Hour) }, false},
		{"nor when nothing is to wait any more", Options{Size: 8}, func(y *yard, _ *Sandbox) { y.end() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newYard(t, map[string]int{"worker": 1}, c.opts)
			y.stocked("worker", 1)
			y.set(func() { y.waiting = map[string]int{"another": 1} }) // nothing is started in its place
			back := y.acquire("worker")
			if back == nil {
				t.Fatal("nothing waited")
			}
			c.change(y, back)
			if got := y.pool.Release("worker", back); got != c.kept {
				t.Errorf("it was taken back: %v", got)
			}
			shelf := y.shelf("worker")
			if kept := len(shelf.Waiting) == 1 && shelf.Waiting[0].ID == back.ID; kept != c.kept {
				t.Errorf("%+v", shelf)
			}
			if !y.pool.Has(back.ID) {
				t.Error("it is nobody's, and would be swept as a stray")
			}
		})
	}
}

func TestWhatMayComeBackIsNotStartedAgain(t *testing.T) {
	y := newYard(t, nil, Options{Size: 8})
	y.pool.mu.Lock()
	defer y.pool.mu.Unlock()
	now, s := time.Now(), y.pool.unit("worker")
	s.expect(&Sandbox{ID: "one run only", Runs: 1}, now)
	s.expect(&Sandbox{ID: "its last run", Runs: 3, Had: 2}, now)
	if n := s.returning(now); n != 0 {
		t.Errorf("%d are to come back that can't", n)
	}
	s.expect(&Sandbox{ID: "two more runs", Runs: 3, Had: 1}, now)
	if n := s.returning(now.Add(refillTime)); n != 1 {
		t.Errorf("%d are to come back", n)
	}
	if n := s.returning(now.Add(refillTime + 1)); n != 0 {
		t.Errorf("%d are still to come back", n)
	}
}

func TestAPoolThatEndsLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	y := newYard(t, map[string]int{"worker": 3}, Options{Size: 8})
	y.stocked("worker", 3)
	taken := y.pool.Acquire(y.unit("worker"))
	y.end()
	if refs := y.containers(""); len(refs) != 1 || refs[0].Labels[runtime.LabelRun] != taken.ID {
		t.Errorf("all but the run's should be gone: %v", refs)
	}
	if dirs := y.dirs(); len(dirs) != 1 {
		t.Errorf("directories %v", dirs)
	}
	if err := taken.Discard(context.Background()); err != nil {
		t.Error(err)
	}
	if refs, dirs := y.containers(""), y.dirs(); len(refs)+len(dirs) > 0 {
		t.Errorf("left %v, %v", refs, dirs)
	}
	if err := testkit.Leaks(before); err != nil {
		t.Error(err)
	}
}

func TestASandboxsPlaceAmongItsRuns(t *testing.T) {
	for _, c := range []struct {
		name      string
		of        *Sandbox
		want      ReuseSlot
		continues bool
	}{
		{"its only run", &Sandbox{Runs: 1}, ReuseSlot{}, false},
		{"a run of a sandbox that says nothing", &Sandbox{}, ReuseSlot{}, false},
		{"the first of three", &Sandbox{Runs: 3}, ReuseSlot{Number: 1, Remaining: 2, Told: true}, true},
		{"the last of three", &Sandbox{Runs: 3, Had: 2, Last: "r2"}, ReuseSlot{Number: 3, Behind: "r2", Told: true}, false},
	} {
		if got := c.of.Slot(); got != c.want || got.Continues() != c.continues {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestASandboxThatDoesNotComeToWaitIsGone(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(y *yard)
	}{
		{"since it can't be started", func(y *yard) { y.breaks("Start", errNo) }},
		{"since it ends before that", func(y *yard) {
			y.engine.Program = func(_ context.Context, _ runtime.ContainerSpec, _, _ io.Writer) int { return 1 }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newYard(t, nil, Options{Size: 8})
			c.spoil(y)
			_, err := y.Start(t.Context(), y.unit("worker"), "s1", false)
			if err == nil {
				t.Error("it waits")
			}
			if refs, dirs := y.containers(""), y.dirs(); len(refs)+len(dirs) > 0 {
				t.Errorf("left %v, %v", refs, dirs)
			}
		})
	}
}
