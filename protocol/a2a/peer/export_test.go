package peer

import "testing"

// Take has streams of so many events and tasks of so many bytes taken in a test.
func Take(t *testing.T, events, bytes int) {
	t.Helper()
	mostEvents, mostBytes = events, bytes
	t.Cleanup(func() { mostEvents, mostBytes = maxEvents, MaxTask })
}
