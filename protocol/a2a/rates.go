package a2a

import (
	"sync"
	"time"
)

// rates bounds the messages that units get in a minute.
type rates struct {
	most int // 0: no bound

	mu    sync.Mutex
	units map[string]*bucket
}

// bucket holds messages that a unit may still get. It fills steadily.
type bucket struct {
	left   float64
	filled time.Time
}

func newRates(most int) *rates { return &rates{most: most, units: map[string]*bucket{}} }

// take takes a message of a unit, or refuses it.
func (r *rates) take(unit string, now time.Time) error {
	if r.most == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.units[unit]
	if b == nil {
		b = &bucket{left: float64(r.most), filled: now}
		r.units[unit] = b
	}
	b.left = min(b.left+now.Sub(b.filled).Minutes()*float64(r.most), float64(r.most))
	b.filled = now
	if b.left < 1 {
		return &refusal{rule: busy, text: "the unit gets more messages in a minute than it may", retry: true}
	}
	b.left--
	return nil
}
