package a2a

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates bounds the messages that units get in a minute.
type rates struct {
	most int // 0: no bound

	mu    sync.Mutex
	units map[string]*rate.Limiter
}

func newRates(most int) *rates { return &rates{most: most, units: map[string]*rate.Limiter{}} }

// take takes a message of a unit, or refuses it.
func (r *rates) take(unit string, now time.Time) error {
	if r.most == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.units[unit]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(float64(r.most)/time.Minute.Seconds()), r.most)
		r.units[unit] = l
	}
	if !l.AllowN(now, 1) {
		return &refusal{rule: busy, text: "the unit gets more messages in a minute than it may", retry: true}
	}
	return nil
}
