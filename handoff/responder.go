package handoff

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// action answers a request, or returns why not.
type action func(http.ResponseWriter, *http.Request) error

// responder writes answers. The handler of a run and a dispatcher share it.
type responder struct{ log *slog.Logger }

// newResponder returns a responder with a log. A nil logger drops what it gets.
func newResponder(logger *slog.Logger) responder {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return responder{logger}
}

// setSafeHeaders tells a browser what it must not do with an answer of ours.
func setSafeHeaders(w http.ResponseWriter) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
}

// handlerOf makes a handler of an action. It answers the action's errors and panics.
func (s responder) handlerOf(act action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.try(act, w, r); err != nil {
			s.answer(w, r, err)
		}
	})
}

func (s responder) try(act action, w http.ResponseWriter, r *http.Request) error {
	err := httpwire.Catch(func() error { return act(w, r) })
	var panicked *httpwire.PanicError
	if errors.As(err, &panicked) {
		s.log.ErrorContext(r.Context(), "handler panicked", "panic", panicked.What, "stack", string(panicked.Stack))
		return fault.New(fault.Internal, "%s", fault.Internal.Title())
	}
	return err
}

// reply answers with a value as JSON.
func (s responder) reply(w http.ResponseWriter, r *http.Request, status int, v any) error {
	body, err := httpwire.Encode(v)
	if err == nil {
		s.send(w, r, status, httpwire.TypeJSON, body)
	}
	return err
}

func (s responder) send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Now().Add(writeTime)) // a connection without deadlines is a test's
	_ = conn.SetReadDeadline(time.Now().Add(restOfBody)) // the server reads what is left of the body before it answers
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body))) // a simple client reads no chunks
	w.WriteHeader(status)
	if _, err := bytes.NewReader(body).WriteTo(w); err != nil {
		s.log.DebugContext(r.Context(), "answer not written", "error", err)
	}
}
