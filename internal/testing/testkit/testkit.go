// Package testkit has what tests of several packages need: patience, also with goroutines, a log to
// read in, an address where nobody listens, another user, deep directories.
package testkit

import (
	"bytes"
	"net"
	"runtime"
	"sync"
	"testing"
)

// HeapBytes returns what the heap holds of what is in use. A test that measures it isn't parallel.
func HeapBytes() int64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap has 2^63 bytes
}

// Log is a log that can be read while it is written.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset forgets what was written.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// Nobody returns an address of this host, with its port, where nobody listens. Nobody else gets the port
// before the test ends: it is one end of a connection.
func Nobody(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), listener.Close() })
	return conn.LocalAddr().String()
}
