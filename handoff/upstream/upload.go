package upstream

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// upload is the body of a request, which is read while the answer may come already: by another
// goroutine than that of its handler, and perhaps after that has its answer.
type upload struct {
	body    io.ReadCloser
	conn    *http.ResponseController
	silence *httpwire.Silence
	limits  Options

	mu      sync.Mutex
	reading sync.WaitGroup
	over    bool
	busy    bool
	broken  bool
	bytes   int64
}

// Read implements io.Reader. A caller that sends nothing for too long is gone.
func (u *upload) Read(p []byte) (int, error) {
	if !u.begin() {
		return 0, http.ErrBodyReadAfterClose
	}
	defer u.reading.Done()
	n, err := u.body.Read(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = false
	u.bytes += int64(n)
	if u.over {
		return 0, http.ErrBodyReadAfterClose
	}
	if err != nil {
		u.broken = !errors.Is(err, io.EOF)
		_ = u.conn.SetReadDeadline(time.Time{}) // what reads on is the server, which waits for the caller's end
	}
	u.silence.Heard(u.limits.FirstByte)
	return n, err
}

func (u *upload) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return false
	}
	u.reading.Add(1)
	u.busy = true
	_ = u.conn.SetReadDeadline(time.Now().Add(u.limits.Silence)) // a writer without one is a test's
	return true
}

// Close implements io.Closer. The body is the server's to close.
func (u *upload) Close() error { return nil }

// close ends a read that is under way, and has none come any more.
func (u *upload) close() {
	u.mu.Lock()
	u.over = true
	if u.busy {
		_ = u.conn.SetReadDeadline(time.Unix(1, 0))
	}
	u.mu.Unlock()
	u.reading.Wait()
	_ = u.conn.SetReadDeadline(time.Time{})
}

func (u *upload) count() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bytes
}

// brokeOff reports whether the caller didn't send all of it.
func (u *upload) brokeOff() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.broken
}
