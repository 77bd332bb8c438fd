package registry

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// newGate returns a gate that admits one goroutine at a time. Unlike a mutex, it lets a
// waiting goroutine give up.
func newGate() *semaphore.Weighted { return semaphore.NewWeighted(1) }

// enter waits for a gate. Whoever has entered has to leave it by Release(1).
func enter(ctx context.Context, gate *semaphore.Weighted) error {
	if err := gate.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for unit: %w", err)
	}
	return nil
}

// gates are one gate for each unit.
type gates struct{ byName sync.Map }

// enter waits for the gate of a unit, until leave.
func (g *gates) enter(ctx context.Context, name string) (leave func(), err error) {
	gate, _ := g.byName.LoadOrStore(name, newGate())
	one := gate.(*semaphore.Weighted)
	return func() { one.Release(1) }, enter(ctx, one)
}
