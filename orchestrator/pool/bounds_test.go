package pool

import (
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPoolKeepsToItsBounds(t *testing.T) {
	many := map[string]int{"worker": 3, "asker": 3}
	full := func(y *yard, n int) {
		y.t.Helper()
		y.within("it is full", func() bool { return y.pool.Stats().Waiting == n })
		if name, _ := y.pool.next(); name != "" {
			y.t.Errorf("one more is wanted for %q: %+v", name, y.pool.Stats())
		}
	}
	t.Run("its size", func(t *testing.T) {
		full(newYard(t, many, Options{Size: 4}), 4)
	})
	t.Run("its memory", func(t *testing.T) {
		y := newYard(t, many, Options{Size: 8, MemoryBytes: 3*guessedMemory - 1})
		full(y, 2)
		if stats := y.pool.Stats(); stats.UsedBytes != 2*guessedMemory {
			t.Errorf("%+v", stats)
		}
	})
	t.Run("and its memory counts what runs were seen to take", func(t *testing.T) {
		y := newYard(t, nil, Options{Size: 8, MemoryBytes: 2 * guessedMemory})
		y.pool.Learn(y.unit("worker"), Observation{MemoryBytes: 2 * guessedMemory / 5})
		y.set(func() { y.wants = map[string]int{"worker": 8} })
		y.survey()
		full(y, 5)
	})
	t.Run("and gives way to runs that wait", func(t *testing.T) {
		y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
		y.stocked("worker", 1)
		y.set(func() { y.waiting = map[string]int{"another": 1} })
		y.acquire("worker")
		y.calm()
		if name, _ := y.pool.next(); name != "" {
			t.Errorf("%q is to be filled", name)
		}
		y.set(func() { y.waiting = nil })
		y.pool.nudge()
		y.stocked("worker", 1)
	})
	t.Run("but is filled for a unit whose runs wait, beside idle processors", func(t *testing.T) {
		y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
		y.stocked("worker", 1)
		y.set(func() { y.waiting, y.running = map[string]int{"worker": 1}, goruntime.NumCPU() })
		y.acquire("worker")
		y.calm()
		if name, _ := y.pool.next(); name != "" {
			t.Errorf("%q is to be filled while every processor has a run", name)
		}
		y.set(func() { y.running = goruntime.NumCPU() - 1 })
		y.pool.nudge()
		y.stocked("worker", 1)
	})
	t.Run("and only where fewer wait than runs do", func(t *testing.T) {
		y := newYard(t, map[string]int{"worker": 2}, Options{Size: 8})
		y.stocked("worker", 2)
		y.set(func() { y.waiting = map[string]int{"worker": 1} })
		y.acquire("worker")
		y.calm()
		if name, _ := y.pool.next(); name != "" {
			t.Errorf("%q is to be filled, and one waits for the one run", name)
		}
		y.set(func() { y.waiting = map[string]int{"worker": 2} })
		y.pool.nudge()
		y.stocked("worker", 2)
	})
	t.Run("and gives way to a container that is being started", func(t *testing.T) {
		y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
		y.stocked("worker", 1)
		started := y.pool.ColdStart()
		if y.acquire("worker") == nil {
			t.Error("a run didn't get what waited")
		}
		y.calm()
		if name, _ := y.pool.next(); name != "" {
			t.Errorf("%q is to be filled", name)
		}
		started()
		y.stocked("worker", 1)
	})
	t.Run("and gives way to a call that has just come", func(t *testing.T) {
		y := newYard(t, nil, Options{Size: 8})
		now := time.Now()
		y.pool.mu.Lock()
		y.pool.unit("worker").fixed, y.pool.unit("asker").calls = 1, []time.Time{now.Add(time.Minute)}
		y.pool.mu.Unlock()
		if name, _ := y.pool.next(); name != "" {
			t.Errorf("%q is to be filled", name)
		}
	})
	t.Run("and gives way to runs on all processors, unless it is quiet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // no time passes in it between a call and the next look
			y := &yard{t: t, running: goruntime.NumCPU()}
			y.pool = New(y, Options{Size: 8}, nil)
			y.pool.world = y
			next := func(since time.Duration) string {
				y.pool.mu.Lock()
				y.pool.unit("worker").fixed, y.pool.unit("worker").calls = 1, []time.Time{time.Now().Add(-since)}
				y.pool.mu.Unlock()
				name, id := y.pool.next()
				if name != "" { // as if it had failed
					y.pool.mu.Lock()
					y.pool.unit(name).coming--
					delete(y.pool.filling, id)
					y.pool.mu.Unlock()
				}
				return name
			}
			if name := next(quietTime / 2); name != "" {
				t.Errorf("%q is to be filled beside runs on all processors", name)
			}
			if name := next(2 * quietTime); name != "worker" {
				t.Errorf("%q is to be filled in a quiet time", name)
			}
		})
	})
	t.Run("and stops for a while where it fails", func(t *testing.T) {
		y := newYard(t, nil, Options{Size: 2})
		y.breaks("Start", errNo)
		y.set(func() { y.wants = map[string]int{"worker": 1} })
		y.survey()
		y.within("it has failed", func() bool { s := y.shelf("worker"); return s.Failures == 1 && s.Starting == 0 })
		if name, _ := y.pool.next(); name != "" {
			t.Errorf("%q is tried again at once", name)
		}
		y.breaks("Start", nil)
		y.pool.mu.Lock()
		left := time.Until(y.pool.unit("worker").pause)
		y.pool.mu.Unlock()
		if left <= 0 || left > fillPause {
			t.Errorf("it is tried again in %v", left)
		}
		y.pool.Pause("worker", time.Time{})
		y.stocked("worker", 1)
		if left := y.dirs(); len(left) != 1 {
			t.Errorf("directories %v", left)
		}
	})
}

func TestThoseWhoAskForTheirsComeFirst(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name       string
		mine, them unitPool
		before     bool
	}{
		{"who asks, before who is called", unitPool{fixed: 1}, unitPool{calls: []time.Time{now}}, true},
		{"who is called, after who asks", unitPool{calls: []time.Time{now}}, unitPool{fixed: 1}, false},
		{"who has what it asks for, like all others", unitPool{fixed: 1, waiting: make([]*Sandbox, 1)}, unitPool{calls: []time.Time{now}}, false},
		{"of two that ask, who was called later", unitPool{fixed: 1, calls: []time.Time{now}}, unitPool{fixed: 1, calls: []time.Time{now.Add(-time.Second)}}, true},
		{"of two that don't ask as well", unitPool{calls: []time.Time{now.Add(-time.Second)}}, unitPool{calls: []time.Time{now}}, false},
	} {
		if got := c.mine.before(&c.them); got != c.before {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
