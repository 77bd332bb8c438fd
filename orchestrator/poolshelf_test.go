package orchestrator

import (
	"slices"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/runtime"
)

func TestAShelfWantsWhatWillBeCalledFor(t *testing.T) {
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
		name  string
		shelf shelf
		want  int
	}{
		{"nothing for a unit that nobody calls", shelf{}, 0},
		{"nothing for one that was called once", shelf{calls: ago(time.Second)}, 0},
		{"what it asks for, called or not", shelf{fixed: 3}, 3},
		{"what it asks for, called more than once", shelf{fixed: 3, calls: ago(time.Second, time.Second)}, 3},
		{"one, called twice and not lately", shelf{calls: ago(2*time.Minute, time.Minute)}, 1},
		{"one more, called twice lately", shelf{calls: ago(2*time.Second, time.Second)}, 2},
		{"nothing, called once in the time that counts", shelf{calls: ago(6*time.Minute, time.Minute)}, 0},
		{"nothing any more, idle", shelf{calls: times(100, 6*time.Minute)}, 0},
		{"as many as are called in the time of a start", shelf{calls: times(60, time.Second)}, 4},
		{"and no more than the most", shelf{calls: times(128, 0)}, 1 + 7},
	} {
		if got := c.shelf.wanted(now, idle); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	var s shelf
	for i := range 1000 {
		s.called(now.Add(time.Duration(i)))
	}
	if len(s.calls) != 128 || !s.lastCall().Equal(now.Add(999)) || s.wanted(now, idle) > mostAdaptive {
		t.Errorf("%d calls are remembered, the last of %v", len(s.calls), s.lastCall())
	}
}

func TestAShelfIsCulled(t *testing.T) {
	const key, maxAge = "u@2", time.Hour
	now := time.Now()
	sandbox := func(change func(*parked)) *parked {
		p := &parked{key: key, born: now.Add(-time.Minute), sandbox: &runtime.Sandbox{}}
		change(p)
		return p
	}
	good := func() *parked { return sandbox(func(*parked) {}) }
	old := func() *parked { return sandbox(func(p *parked) { p.born = now.Add(-2 * maxAge) }) }
	other := func() *parked { return sandbox(func(p *parked) { p.key = "u@1" }) }
	for _, c := range []struct {
		name    string
		waiting []*parked
		newest  string
		asks    string
		wanted  int
		left    []int // of waiting
	}{
		{"nothing where all is well", []*parked{good(), good()}, key, "", 2, []int{0, 1}},
		{"the oldest of what is more than wanted", []*parked{good(), good(), good()}, key, "", 1, []int{2}},
		{"all that nobody wants", []*parked{good()}, key, "", 0, nil},
		{"what has waited for too long", []*parked{old(), good()}, key, "", 2, []int{1}},
		{"what is of another version", []*parked{other(), good()}, key, "", 2, []int{1}},
		{"nothing of a unit that can't be read now", []*parked{other(), good()}, "", "", 2, []int{0, 1}},
		{"what could be loaded further", []*parked{good()}, key, key, 2, nil},
		{"nothing that could not, of another version", []*parked{good()}, key, "u@1", 2, []int{0}},
	} {
		s := shelf{waiting: slices.Clone(c.waiting), asks: c.asks}
		gone := s.cull(now, c.newest, c.wanted, maxAge)
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
