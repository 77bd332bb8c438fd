package handoff

import (
	"bytes"
	"context"
	"encoding/json"
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
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, err error) {
	if cause := context.Cause(r.Context()); cause != nil && errors.Is(err, cause) { // whatever we end for
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	p := problemOf(err)
	h.logRefusal(r, p, err)
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests && p.Rule == "" {
		w.Header().Set("Retry-After", retryAfter) // a budget of calls that is spent stays so
	}
	body, _ := encode(p) // there is nothing in it that can't be written
	h.send(w, r, p.Status, "application/problem+json", body)
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
func (h *Handler) logRefusal(r *http.Request, p problem, err error) {
	level, attrs := slog.LevelDebug, []slog.Attr{slog.String("kind", p.Code)}
	switch {
	case r.Context().Err() != nil: // nobody waits for it
	case p.Rule != "":
		level, attrs = slog.LevelInfo, append(attrs, slog.String("rule", string(p.Rule)))
	case p.Status == http.StatusInternalServerError:
		level, attrs = slog.LevelError, append(attrs, slog.Any("error", err))
	case p.Status > http.StatusInternalServerError:
		level, attrs = slog.LevelWarn, append(attrs, slog.Any("error", err))
	}
	h.log.LogAttrs(r.Context(), level, "request refused", attrs...)
}

// reply answers with a value as JSON.
func (h *Handler) reply(w http.ResponseWriter, r *http.Request, status int, v any) error {
	body, err := encode(v)
	if err == nil {
		h.send(w, r, status, "application/json", body)
	}
	return err
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return b.Bytes(), nil
}

func (h *Handler) send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // a connection without deadlines is a test's
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if _, err := bytes.NewReader(body).WriteTo(w); err != nil {
		h.log.DebugContext(r.Context(), "answer not written", "error", err)
	}
}
