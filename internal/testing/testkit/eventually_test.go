package testkit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWithin(t *testing.T) {
	for name, c := range map[string]struct {
		after, patience time.Duration
		holds           bool
		late            time.Duration // the longest time that it may be seen too late
		looks           int           // the most that it takes
	}{
		"what holds already":     {0, time.Second, true, 0, 1},
		"what takes a moment":    {20 * time.Millisecond, time.Second, true, 3 * time.Millisecond, 12},
		"what takes a second":    {time.Second, time.Minute, true, 125 * time.Millisecond, 60},
		"what takes a minute":    {time.Minute, Patience, true, longestPause, 400},
		"what doesn't come":      {time.Hour, time.Minute, false, longestPause, 400},
		"what nobody waits for":  {time.Second, 0, false, shortestPause, 2},
		"what comes at the last": {time.Minute, time.Minute, true, longestPause, 400},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, looks := time.Now(), 0
				holds := Within(c.patience, func() bool { looks++; return time.Since(start) >= c.after })
				late := time.Since(start) - min(c.after, c.patience)
				if holds != c.holds || late < 0 || late > c.late || looks > c.looks {
					t.Errorf("holds: %v, %v too late, %d looks", holds, late, looks)
				}
			})
		})
	}
}
