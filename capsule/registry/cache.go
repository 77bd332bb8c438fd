package registry

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// maxCached bounds the number of loaded versions in memory. Beyond it the oldest is
// dropped.
const maxCached = 256

// cache holds what was loaded of versions. These never change; what their records say of them
// may, and is compared by whoever takes an entry.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]cached
	order   []cacheKey // oldest first
}

// cached is a version in memory.
type cached struct {
	capsule *capsule.Capsule
	unit    *unit.Unit // of the capsule and the record
	rec     record
}

type cacheKey struct{ name, version string }

func (c *cache) get(key cacheKey) (cached, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, ok := c.entries[key]
	return of, ok
}

func (c *cache) put(key cacheKey, of cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[cacheKey]cached{}
	}
	if _, known := c.entries[key]; !known {
		c.order = append(c.order, key)
	}
	c.entries[key] = of
	if len(c.order) > maxCached {
		delete(c.entries, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *cache) drop(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
	c.order = slices.DeleteFunc(c.order, func(k cacheKey) bool { return k == key })
}

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
