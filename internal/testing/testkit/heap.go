package testkit

import "runtime"

// HeapBytes returns what the heap holds of what is in use. A test that measures it isn't parallel.
func HeapBytes() int64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap has 2^63 bytes
}
