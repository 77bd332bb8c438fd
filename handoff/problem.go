package handoff

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

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
		w.Header().Set("Retry-After", httpwire.RetryAfter)
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
	var refusal *Refusal
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
