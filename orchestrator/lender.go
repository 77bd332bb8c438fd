package orchestrator

import (
	"context"
	"sync"
)

// lender gives a run's slot to others while anything of the run waits for its calls, so
// that a chain of calls never waits for itself.
type lender struct {
	slot *ticket

	mu      sync.Mutex
	waiting int // requests of the run's that wait for a callee
}

// await lets the run wait without its slot: wait returns when what it waits for has come,
// or ctx has ended. A run that doesn't wait keeps its slot.
func (l *lender) await(ctx context.Context, wait func()) {
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	l.waiting++
	if l.waiting == 1 {
		_ = l.slot.suspend() // one that is lent out already stays so
	}
	l.mu.Unlock()
	wait()
	l.mu.Lock()
	l.waiting--
	l.mu.Unlock()
}

// regain gets a slot again for a run that waits for nothing any more, before it hears of
// an end. It returns false when there was none before ctx ended: then the run has to ask
// again.
func (l *lender) regain(ctx context.Context) bool {
	l.mu.Lock()
	waits := l.waiting > 0
	l.mu.Unlock()
	return waits || l.slot.resume(ctx) == nil
}
