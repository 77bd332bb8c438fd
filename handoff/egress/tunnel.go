package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// tunnel is the way to one target that was allowed.
type tunnel struct {
	session *Session
	to      target
	count   *counter
}

// established is the answer behind which the connection is the program's own.
const established = "HTTP/1.1 200 Connection Established\r\n\r\n"

// open connects, answers 200, and carries TLS for the target until the tunnel ends. It returns
// an error while an answer can be given.
func (t tunnel) open(w http.ResponseWriter, r *http.Request) error {
	far, err := t.session.door.dial(r.Context(), t.to)
	if err != nil {
		return t.refused(err)
	}
	defer func() { _ = far.Close() }() // what was sent was sent
	near, ahead, err := hijack(w)
	if err != nil {
		return err
	}
	defer func() { _ = near.Close() }() // likewise
	defer context.AfterFunc(r.Context(), func() { _, _ = near.Close(), far.Close() })()
	if _, err := io.WriteString(near, established); err != nil {
		return nil
	}
	first, ok := t.greeting(near, io.MultiReader(ahead, near))
	if !ok {
		return nil
	}
	rest, _ := io.ReadAll(ahead) // it is in memory
	first = append(first, rest...)
	t.count.tunnels.Add(1)
	t.session.door.tunnels.Add(1)
	if _, err := far.Write(first); err != nil {
		return nil
	}
	t.sent(len(first))
	t.join(near, far)
	return nil
}

// hijack takes over a connection, and returns what the server has read ahead of it.
func hijack(w http.ResponseWriter) (net.Conn, *bytes.Reader, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over connection: %w", err)
	}
	_ = conn.SetDeadline(time.Time{}) // a connection without deadlines is a test's
	ahead, err := rw.Peek(rw.Reader.Buffered())
	if err != nil {
		return nil, nil, fmt.Errorf("read ahead: %w", err)
	}
	return conn, bytes.NewReader(ahead), nil // the server's own reader ends the request with the client's half
}

// unrecognised is TLS's fatal alert 112: the server doesn't know the name.
var unrecognised = []byte{21, 3, 3, 0, 2, 2, 112}

// greeting reads the TLS client's first message, which has to name the target.
func (t tunnel) greeting(near net.Conn, ahead io.Reader) (first []byte, ok bool) {
	_ = near.SetReadDeadline(time.Now().Add(t.session.door.opts.Hello))
	first, name, err := readHello(ahead)
	_ = near.SetReadDeadline(time.Time{})
	switch {
	case err == nil && name == t.to.host:
		return first, true
	case err == nil || errors.Is(err, errNoName):
		_, _ = near.Write(unrecognised) // the connection ends either way
	case !errors.Is(err, errNoTLS): // it has gone, or says nothing
		return nil, false
	}
	_ = t.refused(refuse(RuleTLS, fault.New(fault.Forbidden, "a tunnel to %s carries TLS for that host", t.to)))
	return nil, false
}

// join carries bytes both ways until both sides have ended, one fails, or nothing moves.
func (t tunnel) join(near, far net.Conn) {
	last := newIdle(t.session.door.opts.Idle, func() { _, _ = near.Close(), far.Close() })
	defer last.stop()
	var up sync.WaitGroup
	up.Go(func() {
		carry(far, near, func(n int) { last.moved(); t.sent(n) })
	})
	carry(near, far, func(n int) { last.moved(); t.received(n) })
	up.Wait()
}

func (t tunnel) sent(n int) {
	t.count.out.Add(int64(n))
	t.session.door.out.Add(int64(n))
}

func (t tunnel) received(n int) {
	t.count.in.Add(int64(n))
	t.session.door.in.Add(int64(n))
}

const (
	// chunk is what is copied at once, in bytes.
	chunk = 64 << 10
	// spliceAfter is how many bytes are copied one way before the kernel is asked to pass them on
	// by itself: a small answer isn't worth a pipe.
	spliceAfter = 1 << 20
)

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// carry moves bytes one way until its source ends, which it then tells the other side. Where that
// can't be, or a side fails, both ways are over.
func carry(to, from net.Conn, moved func(n int)) {
	err := copyAbout(spliceAfter, to, from, moved)
	if err == nil {
		err = splice(to, from, moved)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = copyAbout(math.MaxInt64, to, from, moved)
	}
	if errors.Is(err, io.EOF) {
		if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			return
		}
	}
	_, _ = to.Close(), from.Close() // what was sent was sent
}

// copyAbout copies until so many bytes are over there, from ends (io.EOF), or a side fails.
func copyAbout(most int64, to io.Writer, from io.Reader, moved func(n int)) error {
	buffer := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buffer)
	for most > 0 {
		n, err := from.Read(buffer[:])
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
			moved(n)
			most -= int64(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// idle calls over when nothing has moved for a while.
type idle struct {
	after time.Duration
	at    atomic.Int64 // when something moved, since began
	began time.Time
	mu    sync.Mutex
	timer *time.Timer // nil: stopped
	over  func()
}

func newIdle(after time.Duration, over func()) *idle {
	i := &idle{after: after, began: time.Now(), over: over}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer = time.AfterFunc(after, i.look)
	return i
}

func (i *idle) moved() { i.at.Store(int64(time.Since(i.began))) }

func (i *idle) look() {
	i.mu.Lock()
	defer i.mu.Unlock()
	left := i.after - (time.Since(i.began) - time.Duration(i.at.Load()))
	switch {
	case i.timer == nil:
	case left > 0:
		i.timer.Reset(left)
	default:
		i.over()
	}
}

func (i *idle) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer.Stop()
	i.timer = nil
}

// sayRefused answers a CONNECT with a problem, whose text is in the status line too: it is all
// that most clients show. It reports whether the connection could be taken over for that.
func sayRefused(w http.ResponseWriter, p httpwire.Problem) bool {
	body, err := httpwire.Encode(p)
	if err != nil {
		return false
	}
	conn, _, err := hijack(w)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // it was told all
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	out := bufio.NewWriter(conn)
	_, _ = fmt.Fprintf(out, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n",
		p.Status, reason(p), httpwire.TypeProblem, len(body))
	if p.MayRetry() {
		_, _ = fmt.Fprintf(out, "Retry-After: %s\r\n", p.RetryAfter())
	}
	_, _ = fmt.Fprintf(out, "\r\n%s", body)
	_ = out.Flush()
	return true
}

// reason is the text of a status line: one line of printable ASCII.
func reason(p httpwire.Problem) string {
	text := []byte(p.Detail)
	if p.Hint != "" {
		text = append(append(text, "; "...), p.Hint...)
	}
	for i, b := range text {
		if b < ' ' || b > '~' {
			text[i] = '?'
		}
	}
	return string(text)
}
