//go:build linux

package pid1

import (
	"bytes"
	"strings"
	"sync"
)

// readyWriter keeps what is written and tells when "ready" was.
type readyWriter struct {
	buffer *bytes.Buffer
	seen   chan struct{}
	once   sync.Once
}

func (w *readyWriter) Write(b []byte) (int, error) {
	n, err := w.buffer.Write(b)
	if strings.Contains(w.buffer.String(), "ready\n") {
		w.once.Do(func() { close(w.seen) })
	}
	return n, err
}
