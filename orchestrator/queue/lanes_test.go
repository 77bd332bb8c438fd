package queue

import "testing"

func TestLanesAreWhatMayGoOnAtOnce(t *testing.T) {
	t.Parallel()
	enter := func(q *Queue, n int, r Run) {
		for range n {
			if _, err := q.Enter(r, 100); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		own, others Run
		n           int // of the others
		want        int
	}{
		"all slots":                            {own: Run{}, want: 8},
		"no more than its limit":               {own: Run{Limit: 3}, want: 3},
		"no more than the memory has room for": {own: Run{Bytes: 300}, want: 3},
		"one in any case":                      {own: Run{Bytes: 2000}, want: 1},
		"half of the slots beside another":     {others: Run{}, n: 20, want: 4},
		"what another can't use":               {others: Run{Limit: 1}, n: 20, want: 7},
		"what another doesn't want":            {others: Run{}, n: 2, want: 6},
		"all of them beside what needs none":   {others: Run{Slotless: true, Limit: 1}, n: 20, want: 8},
		"as many as there are without slots":   {own: Run{Slotless: true}, others: Run{}, n: 20, want: 20},
	} {
		t.Run(name, func(t *testing.T) {
			q := New(8)
			q.SetMemory(1000)
			c.own.Unit, c.others.Unit = "own", "other"
			enter(q, 20, c.own)
			enter(q, c.n, c.others)
			if _, got := q.Ahead("own"); got != c.want {
				t.Errorf("%d", got)
			}
		})
	}
	if _, got := New(8).Ahead("own"); got != 0 {
		t.Errorf("of a unit without runs: %d", got)
	}
}
