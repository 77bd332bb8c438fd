package httpapi

import (
	"io"
	"net/http"
	"time"
)

const (
	idleTime   = 30 * time.Second // that a client may send or take nothing
	slowestBps = 1 << 10          // bytes a second that a body must come with, on average
)

// paced cuts a client that sends its body too slowly, or doesn't take the answer. No
// time is set for the whole: uploads are large and streams are long.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		out := &pacedWriter{ResponseWriter: w, conn: conn}
		out.extend()
		if r.Body != nil && r.Body != http.NoBody {
			body := &pacedBody{ReadCloser: r.Body, conn: conn, began: time.Now()}
			body.extend()
			r = r.WithContext(r.Context()) // a copy: the server's own is not ours to change
			r.Body = body
		}
		next.ServeHTTP(out, r)
	})
}

// pacedBody moves the connection's read deadline on while bytes come. At the body's end
// it lifts it, since the server goes on reading to see whether the client is there.
// A connection without deadlines, as in tests, is left as it is.
type pacedBody struct {
	io.ReadCloser
	conn  *http.ResponseController
	began time.Time
	read  int64
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.extend()
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == io.EOF {
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *pacedBody) extend() {
	earned := time.Duration(b.read) * time.Second / slowestBps
	deadline := b.began.Add(idleTime + earned)
	if idle := time.Now().Add(idleTime); idle.Before(deadline) {
		deadline = idle
	}
	_ = b.conn.SetReadDeadline(deadline)
}

// pacedWriter moves the connection's write deadline on with every write.
type pacedWriter struct {
	http.ResponseWriter
	conn *http.ResponseController
}

func (w *pacedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// WriteHeader is http.ResponseWriter's.
func (w *pacedWriter) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// FlushError is http.ResponseController's.
func (w *pacedWriter) FlushError() error {
	w.extend()
	return w.conn.Flush()
}

// Unwrap is http.ResponseController's.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *pacedWriter) extend() { _ = w.conn.SetWriteDeadline(time.Now().Add(idleTime)) }
