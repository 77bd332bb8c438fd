// Package bytegate bounds what a server holds in memory for all who ask it: bodies that are read
// whole, what followers of runs share, answers that are on their way. Each client and each run has a
// share of one gate, so that nobody needs another's.
//
//	New, Gate.Take (gate.go)         the gate, and its share for each
//	Account, Hold (account.go)       for whom a request's bytes count
//
// It must not know requests, nor what is held. Bodies come to it by httpwire.Intake.
package bytegate

import (
	"context"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
)

// DefaultBytes is the limit of a Gate where nobody sets one.
const DefaultBytes = 256 << 20

// Gate bounds what all requests together hold in memory, in bytes: bodies that are read whole,
// and whatever else is taken. A holder is for whom bytes are held: a run or a client.
//
// A holder may have at most as much as it leaves free: half of the gate if it is alone, a third
// if there are two, and so on. So a holder that has nothing finds room, however much others want.
// What goes beyond is refused at once. A Gate is safe for concurrent use.
type Gate struct {
	limit int64

	mu    sync.Mutex
	held  int64
	by    map[string]int64 // holders
	freed chan struct{}    // closed when something is given back; nil: nobody waits
}

// New returns a Gate for so many bytes; 0 is DefaultBytes.
func New(limit int64) *Gate {
	if limit == 0 {
		limit = DefaultBytes
	}
	return &Gate{limit: limit, by: map[string]int64{}}
}

// Take takes n bytes for a holder until release is called, once or more. The error is an
// Unavailable fault: there is no room.
func (g *Gate) Take(holder string, n int64) (release func(), err error) {
	if err := g.Acquire(holder, n); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { g.Release(holder, n) }), nil
}

// Held returns how many bytes are taken.
func (g *Gate) Held() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// Acquire is Take for a holder that counts by itself what it gives back with Release.
func (g *Gate) Acquire(holder string, n int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.fits(holder, n) {
		return noRoom()
	}
	g.held += n
	g.by[holder] += n
	return nil
}

// fits reports whether a holder may have n bytes more. The caller holds the lock.
func (g *Gate) fits(holder string, n int64) bool {
	return g.by[holder]+n <= g.limit-g.held-n
}

func noRoom() error {
	return fault.New(fault.Unavailable, "there is no memory left for what is sent at the same time").
		WithHint("ask again later, or send less at a time; whoever runs this server can raise request_memory")
}

// Wait is Acquire that takes the bytes as soon as they fit. The error is a fault where they never do, or the cause
// of ctx's end.
func (g *Gate) Wait(ctx context.Context, holder string, n int64) error {
	for g.Acquire(holder, n) != nil {
		freed := g.nextFreed()
		if g.Acquire(holder, n) == nil { // it was given back in between
			return nil
		}
		if n > g.limit/2 {
			return noRoom()
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (g *Gate) nextFreed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.freed == nil {
		g.freed = make(chan struct{})
	}
	return g.freed
}

// Release gives back n bytes of those that a holder has acquired.
func (g *Gate) Release(holder string, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held -= n
	if g.by[holder] -= n; g.by[holder] == 0 {
		delete(g.by, holder)
	}
	if g.freed != nil {
		close(g.freed)
		g.freed = nil
	}
}
