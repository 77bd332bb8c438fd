package a2apeer

import "testing"

// Take has streams of so many events and bytes, and tasks of so many bytes taken in a test.
func Take(t *testing.T, events int, stream int64, bytes int) {
	t.Helper()
	mostEvents, mostStream, mostBytes = events, stream, bytes
	t.Cleanup(func() { mostEvents, mostStream, mostBytes = maxEvents, MaxStream, MaxTask })
}
