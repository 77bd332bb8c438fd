package registry

import (
	"context"
	"fmt"
	"sync"
)

// gate admits one goroutine at a time. Unlike a mutex, it lets a waiting goroutine give up.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for unit: %w", ctx.Err())
	}
}

func (g gate) leave() { <-g }

// gates are one gate for each unit.
type gates struct {
	mu     sync.Mutex
	byName map[string]gate
}

func (g *gates) of(name string) gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byName == nil {
		g.byName = map[string]gate{}
	}
	if _, ok := g.byName[name]; !ok {
		g.byName[name] = newGate()
	}
	return g.byName[name]
}
