package capsuleapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
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

// writeTime is how long a client may take an answer.
const writeTime = 30 * time.Second

// restOfBody is how long what was not read of a body may take, so that its client has the answer.
const restOfBody = 30 * time.Second

var errMethod = errors.New("method not allowed")

// answer is the one place where an error becomes an answer.
func (s responder) answer(w http.ResponseWriter, r *http.Request, err error) {
	// for whatever reason the server ends
	if cause := context.Cause(r.Context()); cause != nil && errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	p := ProblemOf(err)
	s.logRefusal(r, p, err)
	if p.MayRetry() && p.Rule == "" { // a budget that is spent stays spent
		w.Header().Set("Retry-After", p.RetryAfter())
	}
	body, _ := httpwire.Encode(p) // a problem can always be encoded
	s.send(w, r, p.Status, httpwire.TypeProblem, body)
}

// ProblemOf is what a capsule may know of an error. The status comes from the table of
// faults, except the router's 405.
func ProblemOf(err error) httpwire.Problem {
	if errors.Is(err, errMethod) {
		return httpwire.MethodNotAllowed()
	}
	if fault.Is(err, fault.Cancelled) { // the capsule is there to read it: the server ends, not its client
		err = fault.Wrap(fault.Unavailable, err, "the server ends before the call does").WithHint("ask again soon")
	}
	p := httpwire.ProblemOf(err)
	var refusal *handoff.Refusal
	if errors.As(err, &refusal) {
		p.Rule = string(refusal.Rule)
	}
	return p
}

// logRefusal logs what a capsule was refused, and the causes that a capsule isn't told.
func (s responder) logRefusal(r *http.Request, p httpwire.Problem, err error) {
	level, attrs := slog.LevelDebug, []slog.Attr{slog.String("kind", p.Code)}
	switch {
	case r.Context().Err() != nil: // nobody waits for it
	case errors.Is(err, errUnassigned): // a program that knows no handshake may ask often
	case p.Rule != "":
		level, attrs = slog.LevelInfo, append(attrs, slog.String("rule", p.Rule))
	case p.Status == http.StatusInternalServerError:
		level, attrs = slog.LevelError, append(attrs, slog.Any("error", err))
	case p.Status > http.StatusInternalServerError:
		level, attrs = slog.LevelWarn, append(attrs, slog.Any("error", err))
	}
	s.log.LogAttrs(r.Context(), level, "request refused", attrs...)
}

func (s responder) getHealth(w http.ResponseWriter, r *http.Request) error {
	return s.reply(w, r, http.StatusOK, map[string]string{"status": "healthy", "service": "aod"})
}
