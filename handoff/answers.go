package handoff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

// action answers a request, or returns why not.
type action func(http.ResponseWriter, *http.Request) error

// answers is how requests are answered, whoever serves them.
type answers struct{ log *slog.Logger }

// newAnswers drops what is logged where the logger is nil.
func newAnswers(logger *slog.Logger, about ...any) answers {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return answers{logger.With(about...)}
}

// guard says what a browser must not do with any answer of ours.
func guard(w http.ResponseWriter) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
}

// answering makes answers of an action's errors, and of its panics.
func (a answers) answering(act action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.try(act, w, r); err != nil {
			a.answer(w, r, err)
		}
	})
}

func (a answers) try(act action, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			a.log.ErrorContext(r.Context(), "handler panicked", "panic", describePanic(v), "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "%s", fault.Internal.Title())
		}
	}()
	return act(w, r)
}

// describePanic leaves out a value that may hold a payload.
func describePanic(v any) string {
	var bug goruntime.Error
	if err, ok := v.(error); ok && errors.As(err, &bug) {
		return bug.Error()
	}
	return "a value"
}

// reply answers with a value as JSON.
func (a answers) reply(w http.ResponseWriter, r *http.Request, status int, v any) error {
	body, err := encode(v)
	if err == nil {
		a.send(w, r, status, "application/json", body)
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

func (a answers) send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Now().Add(writeTime)) // a connection without deadlines is a test's
	_ = conn.SetReadDeadline(time.Now().Add(bodyTime))   // the server reads what is left of the body before it answers
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body))) // a simple client reads no chunks
	w.WriteHeader(status)
	if _, err := bytes.NewReader(body).WriteTo(w); err != nil {
		a.log.DebugContext(r.Context(), "answer not written", "error", err)
	}
}
