package agenttest

import (
	"sync"
	"time"
)

// Clock stands still but for what is worked.
type Clock struct {
	mu    sync.Mutex
	at    time.Time
	first chan struct{} // holds one when an event was seen
}

// NewClock returns a clock.
func NewClock() *Clock { return &Clock{at: time.Unix(1e9, 0), first: make(chan struct{}, 1)} }

// forget forgets the events of the stream before this one.
func (c *Clock) forget() {
	if c == nil {
		return
	}
	select {
	case <-c.first:
	default:
	}
}

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *Clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Seen tells that an event was seen.
func (c *Clock) Seen() {
	select {
	case c.first <- struct{}{}:
	default:
	}
}
