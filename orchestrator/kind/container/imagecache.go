package container

import (
	"context"
	"sync"

	"github.com/agent-on-demand/aod/runtime"
)

// imageCache remembers the images of units, so that a run needn't ask the engine again. Runs
// that want the same missing image share one build.
type imageCache struct {
	mu    sync.Mutex
	known map[string]foundImage // by unit and version
	busy  map[string]chan struct{}
}

type foundImage struct {
	image runtime.Image
	ref   string
}

func newImageCache() *imageCache {
	return &imageCache{known: map[string]foundImage{}, busy: map[string]chan struct{}{}}
}

// get returns the image that is known for key, or the result of find. One find a key runs at a
// time. If ctx ends before it has ended, get returns the cause.
func (c *imageCache) get(ctx context.Context, key string, find func() (foundImage, error)) (foundImage, error) {
	for {
		found, mine, others := c.claim(key)
		switch {
		case others != nil:
			select {
			case <-others:
				continue
			case <-ctx.Done():
				return foundImage{}, context.Cause(ctx)
			}
		case !mine:
			return found, nil
		}
		found, err := find()
		c.settle(key, found, err)
		return found, err
	}
}

// claim returns the known image, or lets the caller find it (mine), or returns the channel to
// wait for.
func (c *imageCache) claim(key string) (found foundImage, mine bool, others chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.known[key]; ok {
		return found, false, nil
	}
	if others := c.busy[key]; others != nil {
		return foundImage{}, false, others
	}
	c.busy[key] = make(chan struct{})
	return foundImage{}, true, nil
}

func (c *imageCache) settle(key string, found foundImage, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.known[key] = found
	}
	close(c.busy[key])
	delete(c.busy, key)
}

// forget drops an image that the engine doesn't have any more.
func (c *imageCache) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, key)
}
