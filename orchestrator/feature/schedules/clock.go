package schedules

import "time"

// Clock is what schedules go by. It may be set, forwards and back, at any time.
type Clock interface {
	Now() time.Time
	// After returns a channel that gets a value after a duration, or earlier.
	After(d time.Duration) <-chan time.Time
}

// wallClock is the machine's.
type wallClock struct{}

// Now implements Clock. The time has no monotonic part: what counts is what the clock shows.
func (wallClock) Now() time.Time { return time.Now().Round(0).UTC() }

// After implements Clock.
func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
