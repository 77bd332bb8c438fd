package registry

import (
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/capsule"
)

// maxCached bounds the number of loaded versions in memory. Beyond it the oldest is
// dropped.
const maxCached = 256

// cache holds the capsules loaded from versions. Versions never change, so an entry is
// never stale.
type cache struct {
	mu       sync.Mutex
	capsules map[cacheKey]*capsule.Capsule
	order    []cacheKey // oldest first
}

type cacheKey struct{ name, version string }

func (c *cache) get(key cacheKey) (*capsule.Capsule, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	loaded, ok := c.capsules[key]
	return loaded, ok
}

func (c *cache) put(key cacheKey, loaded *capsule.Capsule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.capsules == nil {
		c.capsules = map[cacheKey]*capsule.Capsule{}
	}
	if _, known := c.capsules[key]; !known {
		c.order = append(c.order, key)
	}
	c.capsules[key] = loaded
	if len(c.order) > maxCached {
		delete(c.capsules, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *cache) drop(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.capsules, key)
	c.order = slices.DeleteFunc(c.order, func(k cacheKey) bool { return k == key })
}
