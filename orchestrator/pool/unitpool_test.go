package pool

import (
	"slices"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/runtime"
)

func TestAUnitsPoolWantsWhatWillBeCalledFor(t *testing.T) {
	const idle = 5 * time.Minute
	now := time.Now()
	ago := func(all ...time.Duration) (calls []time.Time) {
		for _, d := range all {
			calls = append(calls, now.Add(-d))
		}
		return calls
	}
	times := func(n int, d time.Duration) []time.Time { return ago(slices.Repeat([]time.Duration{d}, n)...) }
	for _, c := range []struct {
		name    string
		units   unitPool
		backlog int
		want    int
	}{
		{"nothing for a unit that nobody calls", unitPool{}, 0, 0},
		{"nothing for one that was called once", unitPool{calls: ago(time.Second)}, 0, 0},
		{"what it asks for, called or not", unitPool{fixed: 3}, 0, 3},
		{"what it asks for, called more than once", unitPool{fixed: 3, calls: ago(time.Second, time.Second)}, 0, 3},
		{"one, called twice and not lately", unitPool{calls: ago(2*time.Minute, time.Minute)}, 0, 1},
		{"one more, called twice lately", unitPool{calls: ago(2*time.Second, time.Second)}, 0, 2},
		{"nothing, called once in the time that counts", unitPool{calls: ago(6*time.Minute, time.Minute)}, 0, 0},
		{"nothing any more, idle", unitPool{calls: times(100, 6*time.Minute)}, 0, 0},
		{"as many as are called in the time of a start", unitPool{calls: times(60, time.Second)}, 0, 4},
		{"and no more than the most", unitPool{calls: times(128, 0)}, 0, 1 + 7},
		{"one, called once while more runs of it wait", unitPool{calls: ago(time.Second)}, 3, 2},
	} {
		if got := c.units.wanted(now, idle, c.backlog); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	var s unitPool
	for i := range 1000 {
		s.called(now.Add(time.Duration(i)))
	}
	if len(s.calls) != 128 || !s.lastCall().Equal(now.Add(999)) || s.wanted(now, idle, 0) > mostAdaptive {
		t.Errorf("%d calls are remembered, the last of %v", len(s.calls), s.lastCall())
	}
}

func TestAUnitsPoolIsTrimmed(t *testing.T) {
	const key, maxAge = "u@2", time.Hour
	now := time.Now()
	sandbox := func(change func(*Sandbox)) *Sandbox {
		p := &Sandbox{Key: key, born: now.Add(-time.Minute), Runtime: &runtime.Sandbox{}}
		change(p)
		return p
	}
	good := func() *Sandbox { return sandbox(func(*Sandbox) {}) }
	old := func() *Sandbox { return sandbox(func(p *Sandbox) { p.born = now.Add(-2 * maxAge) }) }
	other := func() *Sandbox { return sandbox(func(p *Sandbox) { p.Key = "u@1" }) }
	for _, c := range []struct {
		name    string
		waiting []*Sandbox
		newest  string
		asks    string
		wanted  int
		left    []int // of waiting
	}{
		{"nothing where all is well", []*Sandbox{good(), good()}, key, "", 2, []int{0, 1}},
		{"the oldest of what is more than wanted", []*Sandbox{good(), good(), good()}, key, "", 1, []int{2}},
		{"all that nobody wants", []*Sandbox{good()}, key, "", 0, nil},
		{"what has waited for too long", []*Sandbox{old(), good()}, key, "", 2, []int{1}},
		{"what is of another version", []*Sandbox{other(), good()}, key, "", 2, []int{1}},
		{"nothing of a unit that can't be read now", []*Sandbox{other(), good()}, "", "", 2, []int{0, 1}},
		{"what could be loaded further", []*Sandbox{good()}, key, key, 2, nil},
		{"nothing that could not, of another version", []*Sandbox{good()}, key, "u@1", 2, []int{0}},
	} {
		s := unitPool{waiting: slices.Clone(c.waiting), asks: c.asks}
		gone := s.trim(now, c.newest, c.wanted, maxAge)
		var left []int
		for i, p := range c.waiting {
			kept := slices.Contains(s.waiting, p)
			if kept {
				left = append(left, i)
			}
			if kept == slices.Contains(gone, p) {
				t.Errorf("%s: sandbox %d is both, or neither, there and gone", c.name, i)
			}
		}
		if !slices.Equal(left, c.left) {
			t.Errorf("%s: %v are left, want %v", c.name, left, c.left)
		}
	}
}
