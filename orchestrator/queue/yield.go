package queue

import (
	"context"
	"sync"
)

// Yield gives the slot of a run to others while the run waits for its calls, so that a
// chain of calls never waits for itself. It is safe for concurrent use: a run may wait
// for several calls at once.
type Yield struct {
	permit *Permit

	mu      sync.Mutex
	waiting int // requests of the run that wait for a call
}

// NewYield returns the Yield of a run that holds a slot by p.
func NewYield(p *Permit) *Yield { return &Yield{permit: p} }

// Await calls wait while the run has no slot. wait returns when what it waits for has
// come, or when ctx has ended; Await doesn't call it if ctx has ended before. The run
// doesn't get its slot back by itself: see Regain.
func (y *Yield) Await(ctx context.Context, wait func()) {
	if ctx.Err() != nil {
		return
	}
	y.begin()
	wait()
	y.mu.Lock()
	y.waiting--
	y.mu.Unlock()
}

// begin counts one more request that waits. The first one gives up the slot.
func (y *Yield) begin() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.waiting++
	if y.waiting == 1 {
		_ = y.permit.suspend() // a run that has no slot now has none to give up
	}
}

// Regain waits for a slot again, before the run is told of the end of a call. It returns
// true at once while the run still waits for another call. It returns false when ctx
// ended before there was a slot: then the run has to ask again.
func (y *Yield) Regain(ctx context.Context) bool {
	y.mu.Lock()
	waits := y.waiting > 0
	y.mu.Unlock()
	return waits || y.permit.resume(ctx) == nil
}
