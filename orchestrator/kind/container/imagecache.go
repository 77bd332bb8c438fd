package container

import (
	"sync"

	"github.com/agent-on-demand/aod/runtime"
)

// imageCache remembers the images of units, so that a run needn't ask the engine again.
type imageCache struct {
	mu    sync.Mutex
	known map[string]foundImage // by unit and version
}

type foundImage struct {
	image runtime.Image
	ref   string
}

func newImageCache() *imageCache { return &imageCache{known: map[string]foundImage{}} }

// get returns the image that is known for key.
func (c *imageCache) get(key string) (foundImage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.known[key]
	return found, ok
}

func (c *imageCache) put(key string, found foundImage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[key] = found
}

// forget drops an image that the engine doesn't have any more.
func (c *imageCache) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, key)
}

// forgetRef drops an image by its reference.
func (c *imageCache) forgetRef(ref string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, found := range c.known {
		if found.ref == ref {
			delete(c.known, key)
		}
	}
}
