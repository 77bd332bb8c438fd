package metrics

import (
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
)

func TestFiguresOfWhatEndedLately(t *testing.T) {
	start := time.Now()
	at := start.Add
	figures := func(r *Recent, waiting int, now time.Time) api.UnitStats {
		stats := api.UnitStats{Unit: "u", Ended: map[api.Outcome]int64{}, Queued: waiting}
		r.Figures(&stats, "", 2, now)
		return stats
	}
	end := func(r *Recent, outcome api.Outcome, total float64, when time.Time) {
		r.Ended(api.Record{Unit: "u", Outcome: outcome, Timings: api.Timings{Total: total}}, when)
	}
	remembers := func() *Recent { // from the start, however long ago that is by now
		r := NewRecent()
		r.Since = start
		return r
	}
	t.Run("nothing is known of a unit without runs", func(t *testing.T) {
		if got := figures(remembers(), 5, at(time.Minute)); got.Rate != 0 || got.P95 != 0 || got.ExpectedWait != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("rate, percentiles and the wait at that rate", func(t *testing.T) {
		r := remembers()
		for n := range 100 {
			end(r, api.Success, float64(n+1), at(2*time.Minute))
		}
		end(r, api.TimedOut, 1000, at(2*time.Minute))
		got := figures(r, 101, at(5*time.Minute))
		if got.P50 != 51 || got.P95 != 96 || got.Ended[api.Success] != 100 || got.Ended[api.TimedOut] != 1 {
			t.Errorf("%+v", got)
		}
		if got.Rate < 20 || got.Rate > 20.3 || got.ExpectedWait < 298e3 || got.ExpectedWait > 301e3 {
			t.Errorf("101 runs in 5 minutes: %v a minute, 101 more in %v ms", got.Rate, got.ExpectedWait)
		}
	})
	t.Run("what ended long ago counts no more, but for the counts", func(t *testing.T) {
		r := remembers()
		end(r, api.Success, 1, at(time.Second))
		if got := figures(r, 1, at(recentTime+time.Minute)); got.Rate != 0 || got.P50 != 0 && got.ExpectedWait != 0 || got.Ended[api.Success] != 1 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a unit that was seldom asked is no slow one", func(t *testing.T) {
		r := remembers()
		for _, when := range []time.Duration{time.Minute, 8 * time.Minute} {
			began := at(when)
			r.Ended(api.Record{Unit: "u", Outcome: api.Success, StartedAt: &began, Timings: api.Timings{Queue: 60_000, Total: 64_000}}, began)
		}
		end(r, api.WasCancelled, 500_000, at(9*time.Minute)) // in the queue
		if got := figures(r, 6, at(9*time.Minute)); got.ExpectedWait != 12_000 {
			t.Errorf("6 runs of 4 s each, two at once, are over in %v ms", got.ExpectedWait)
		}
	})
	t.Run("of many only the newest are remembered", func(t *testing.T) {
		r := remembers()
		for n := range 3 * recentMost {
			end(r, api.Success, 1, at(time.Duration(n)*100*time.Millisecond))
		}
		now := at(3 * recentMost * 100 * time.Millisecond)
		if got := figures(r, 0, now); got.Rate < 590 || got.Rate > 610 || len(r.units[recentKey{"", "u"}].runs) != recentMost {
			t.Errorf("%v a minute of %d", got.Rate, len(r.units[recentKey{"", "u"}].runs))
		}
	})
	t.Run("a queue that passes the bound is told once", func(t *testing.T) {
		r := remembers()
		end(r, api.Success, 1, at(time.Second))
		for i, c := range []struct {
			ahead  int
			passed bool
		}{{0, false}, {100, true}, {200, false}, {0, false}, {100, true}} {
			wait, passed := r.ExpectedWait("u", Ahead{Runs: c.ahead, Lanes: 2}, 5*time.Minute, at(10*time.Second))
			if passed != c.passed || c.ahead > 0 && wait < 15*time.Minute {
				t.Errorf("%d: %d ahead: %v, %v", i, c.ahead, wait, passed)
			}
		}
	})
}
