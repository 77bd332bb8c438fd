package httpapi

import (
	"io"
	"net/http"
	"time"
)

const (
	idleTime   = 30 * time.Second // without a byte from or to the client
	slowestBps = 1 << 10          // least average bytes per second of a body
)

// paced cuts a client that sends its body too slowly, or doesn't read the answer. The
// request as a whole has no time limit: uploads are large and streams are long.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		out := &pacedWriter{ResponseWriter: w, conn: conn}
		out.extend()
		if r.Body != nil && r.Body != http.NoBody {
			body := &pacedBody{ReadCloser: r.Body, conn: conn, began: time.Now()}
			body.extend()
			out.body = body
			r = r.WithContext(r.Context()) // a copy: the server's own request must not be changed
			r.Body = body
		}
		next.ServeHTTP(out, r)
	})
}

// pacedBody moves the connection's read deadline on while bytes come. At the body's end it
// removes the deadline, since the server goes on reading to see whether the client is
// there. A connection without deadlines, as in tests, is left unchanged.
type pacedBody struct {
	io.ReadCloser
	conn  *http.ResponseController
	began time.Time
	read  int64
	ended bool
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.extend()
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == io.EOF {
		b.ended = true
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

// pacedWriter moves the connection's write deadline on with every write. A refusal doesn't
// wait for the rest of the body: net/http would read it first if the connection were kept.
type pacedWriter struct {
	http.ResponseWriter
	conn *http.ResponseController
	body *pacedBody // nil: the request has none
}

func (w *pacedWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// WriteHeader implements http.ResponseWriter.
func (w *pacedWriter) WriteHeader(status int) {
	w.extend()
	if status >= http.StatusBadRequest && w.body != nil && !w.body.ended {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

// FlushError serves http.ResponseController.
func (w *pacedWriter) FlushError() error {
	w.extend()
	return w.conn.Flush()
}

// Unwrap serves http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *pacedWriter) extend() { _ = w.conn.SetWriteDeadline(time.Now().Add(idleTime)) }
