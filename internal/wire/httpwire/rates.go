package httpwire

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/agent-on-demand/aod/api/fault"
)

// Rate is how often something may be asked for.
type Rate struct {
	Minute int // times in a minute; 0: no bound
	Burst  int // times at once; 0: as many as in a minute
}

func (r Rate) limit() rate.Limit { return rate.Limit(float64(r.Minute) / time.Minute.Seconds()) }

func (r Rate) burst() int {
	if r.Burst > 0 {
		return r.Burst
	}
	return r.Minute
}

// mostRates is how many keys Rates knows before it forgets those that have all of their rate.
const mostRates = 4096

// Rates bounds how often is asked, by keys such as the names of tokens. It is safe for concurrent use. The zero Rates
// is ready.
type Rates struct {
	mu    sync.Mutex
	byKey map[string]*rate.Limiter
}

// Take takes one of a key's rate. Where none is left, the error is a Busy fault that says what is asked too often, and
// after how long there is one again.
func (r *Rates) Take(key string, of Rate, what string) error {
	return r.takeAt(time.Now(), key, of, what)
}

func (r *Rates) takeAt(now time.Time, key string, of Rate, what string) error {
	if of.Minute == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.limiter(now, key, of)
	taken := l.ReserveN(now, 1)
	wait := taken.DelayFrom(now).Round(time.Millisecond) // it is counted in fractions
	if wait == 0 {
		return nil
	}
	taken.CancelAt(now)
	return fault.New(fault.Busy, "%s: %d in a minute are allowed, and %d at once", what, of.Minute, of.burst()).
		WithHint("ask again in %d s", Seconds(wait)).WithRetry(wait)
}

// limiter returns the limiter of a key. The caller holds the lock.
func (r *Rates) limiter(now time.Time, key string, of Rate) *rate.Limiter {
	l := r.byKey[key]
	switch {
	case l == nil:
		r.forget(now)
		l = rate.NewLimiter(of.limit(), of.burst())
		r.byKey[key] = l
	case l.Limit() != of.limit() || l.Burst() != of.burst(): // the operator has changed it
		l.SetLimitAt(now, of.limit())
		l.SetBurstAt(now, of.burst())
	}
	return l
}

// forget makes room for a key. One that has all of its rate is the same as a new one.
func (r *Rates) forget(now time.Time) {
	if len(r.byKey) < mostRates && r.byKey != nil {
		return
	}
	left := map[string]*rate.Limiter{}
	for key, l := range r.byKey {
		if l.TokensAt(now) < float64(l.Burst()) && len(left) < mostRates/2 {
			left[key] = l
		}
	}
	r.byKey = left
}

// Seconds is a time as a header Retry-After has it.
func Seconds(d time.Duration) int { return max(int(math.Ceil(d.Seconds())), 1) }
