package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const idleTime = 30 * time.Second // for the client to take a part of an answer

// paced cuts a client that sends its body too slowly, or doesn't read the answer. The
// request as a whole has no time limit: uploads are large and streams are long.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, r := httpwire.Receive(w, r)
		defer in.Done()
		out := &pacedWriter{ResponseWriter: w, conn: http.NewResponseController(w), in: in}
		if !in.Shared() {
			out.begin() // the answer before may have left a deadline, and 100 Continue is written by the server
		}
		next.ServeHTTP(out, r)
		out.begin() // the server writes what is left
	})
}

// holderOf is for whom what a token's requests hold counts.
func holderOf(token string) string { return "token " + token }

// bounds keep requests within the bounds of the API.
type bounds struct {
	routes *routes
	memory *bytegate.Gate
	upload int64 // bytes of a request as a whole, at most
}

// counted has what a client sends count for its token at the gate of all that is in memory.
func (b bounds) counted(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx := c.Request().Context()
		holder := holderOf(access.ClientOf(ctx))
		if r, _ := b.routes.of(c); r.traits&open != 0 {
			holder = "anybody"
		}
		bytegate.Of(ctx).CountAt(b.memory, holder)
		return next(c)
	}
}

// pacedWriter gives every write its time. A refusal doesn't wait for the rest of the body: net/http would read it first
// if the connection were kept; that of HTTP/2, which others share, is.
type pacedWriter struct {
	http.ResponseWriter
	conn *http.ResponseController
	in   *httpwire.Intake
}

func (w *pacedWriter) Write(p []byte) (int, error) {
	w.begin()
	defer w.end()
	return w.ResponseWriter.Write(p)
}

// WriteHeader implements http.ResponseWriter.
func (w *pacedWriter) WriteHeader(status int) {
	w.begin()
	defer w.end()
	if status >= http.StatusBadRequest && !w.in.Ended() && !w.in.Shared() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

// FlushError serves http.ResponseController.
func (w *pacedWriter) FlushError() error {
	w.begin()
	defer w.end()
	return w.conn.Flush()
}

// Unwrap serves http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *pacedWriter) begin() { _ = w.conn.SetWriteDeadline(time.Now().Add(idleTime)) }

// end takes the deadline away where it would end the answer when it comes. HTTP/1.1 looks at it in a write alone.
func (w *pacedWriter) end() {
	if w.in.Shared() {
		_ = w.conn.SetWriteDeadline(time.Time{})
	}
}

// requestTime bounds requests that neither wait nor carry much data.
const requestTime = 30 * time.Second

// bounded gives every request a time limit, unless its route is slow.
func (b bounds) bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r, _ := b.routes.of(c); r.traits&(slow|stream) != 0 {
			return next(c)
		}
		request := c.Request()
		defer c.SetRequest(request) // the outer handlers must not take this end for the client's
		ctx, cancel := context.WithTimeout(request.Context(), requestTime)
		defer cancel()
		c.SetRequest(request.WithContext(ctx))
		return next(c)
	}
}

// sized refuses a body that is declared to be longer than any that is taken, also where none
// is read.
func (b bounds) sized(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().ContentLength > b.upload {
			_, err := bodyOf(c, b.upload).Read(nil)
			return err
		}
		return next(c)
	}
}
