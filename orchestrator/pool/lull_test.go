package pool

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestALullIsWhenNoRunHasASlotOrWaitsForOne(t *testing.T) {
	const soon = lullTime / 2
	for _, c := range []struct {
		name    string
		running int
		waiting map[string]int
		then    func(y *yard, end func())
		after   time.Duration
	}{
		{"at once where there is none", 0, nil, func(*yard, func()) {}, 0},
		{"when the last one has ended", 1, nil, func(y *yard, _ func()) { y.set(func() { y.running = 0 }) }, soon},
		{"when none waits any more", 0, map[string]int{"another": 1}, func(y *yard, _ func()) { y.set(func() { y.waiting = nil }) }, soon},
		{"at its end, whatever runs", 1, nil, func(*yard, func()) {}, lullTime},
		{"when nobody waits for it", 1, nil, func(_ *yard, end func()) { end() }, soon},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := &yard{t: t, running: c.running, waiting: c.waiting}
				p := New(y, Options{}, nil)
				p.world = y
				ctx, end := context.WithCancel(t.Context())
				defer end()
				time.AfterFunc(soon, func() { c.then(y, end) })
				began := time.Now()
				p.AwaitLull(ctx)
				if took := time.Since(began).Round(soon); took != c.after.Round(soon) {
					t.Errorf("it came after %s", took)
				}
			})
		})
	}
}
