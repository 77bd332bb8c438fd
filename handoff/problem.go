package handoff

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

// problem is the body of every answer that is an error (RFC 9457).
type problem struct {
	Type     string          `json:"type"`
	Title    string          `json:"title"`
	Status   int             `json:"status"`
	Detail   string          `json:"detail"`
	Code     string          `json:"code"`
	Rule     Rule            `json:"rule,omitempty"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

const (
	retryAfter = "5"              // seconds, for a caller that may come again
	writeTime  = 30 * time.Second // for an answer to be taken
)

var errMethod = errors.New("method not allowed")

// answer is the one place where an error becomes an answer.
func (a answers) answer(w http.ResponseWriter, r *http.Request, err error) {
	if cause := context.Cause(r.Context()); cause != nil && errors.Is(err, cause) { // whatever we end for
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	p := problemOf(err)
	a.logRefusal(r, p, err)
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests && p.Rule == "" {
		w.Header().Set("Retry-After", retryAfter) // a budget of calls that is spent stays so
	}
	body, _ := encode(p) // there is nothing in it that can't be written
	a.send(w, r, p.Status, "application/problem+json", body)
}

// problemOf says of an error what a capsule may know. One answer is the router's; every
// other status comes from the table of faults.
func problemOf(err error) problem {
	if errors.Is(err, errMethod) {
		const code = "method_not_allowed"
		return problem{
			Type: "urn:aod:fault:" + code, Title: http.StatusText(http.StatusMethodNotAllowed), Status: http.StatusMethodNotAllowed,
			Detail: "this address does not take the method", Code: code, Hint: "the header Allow lists those that it takes",
		}
	}
	public := fault.Public(err)
	if public.Kind == fault.Cancelled { // the capsule is there to read it, so that it is we who end
		public = fault.Wrap(fault.Unavailable, err, "the server ends before the call does").WithHint("ask again soon")
	}
	p := problem{
		Type:     "urn:aod:fault:" + public.Kind.String(),
		Title:    public.Kind.Title(),
		Status:   fault.HTTPStatus(public),
		Detail:   public.Msg,
		Code:     public.Kind.String(),
		Hint:     public.Hint,
		Findings: public.Findings,
	}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		p.Rule = refusal.Rule
	}
	return p
}

// logRefusal tells the operator of what a capsule may not do, and of what a capsule is
// not told.
func (a answers) logRefusal(r *http.Request, p problem, err error) {
	level, attrs := slog.LevelDebug, []slog.Attr{slog.String("kind", p.Code)}
	switch {
	case r.Context().Err() != nil: // nobody waits for it
	case errors.Is(err, errParked): // a program that knows no handshake may ask often
	case p.Rule != "":
		level, attrs = slog.LevelInfo, append(attrs, slog.String("rule", string(p.Rule)))
	case p.Status == http.StatusInternalServerError:
		level, attrs = slog.LevelError, append(attrs, slog.Any("error", err))
	case p.Status > http.StatusInternalServerError:
		level, attrs = slog.LevelWarn, append(attrs, slog.Any("error", err))
	}
	a.log.LogAttrs(r.Context(), level, "request refused", attrs...)
}
