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

// enter waits for a gate. Whoever has entered has to Release(1).
func enter(ctx context.Context, gate *semaphore.Weighted) error {
	if err := gate.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for unit: %w", err)
	}
	return nil
}

// gates are one gate for each unit.
type gates struct {
	mu     sync.Mutex
	byName map[string]*semaphore.Weighted
}

func (g *gates) of(name string) *semaphore.Weighted {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byName == nil {
		g.byName = map[string]*semaphore.Weighted{}
	}
	if _, ok := g.byName[name]; !ok {
		g.byName[name] = newGate()
	}
	return g.byName[name]
}
