package httpwire

import (
	"fmt"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Heartbeat is how often a stream of events on which nothing happens shows that it lives.
const Heartbeat = 15 * time.Second

// Reply answers with a value as JSON of a media type. HTML in strings stays as it is.
func Reply(w http.ResponseWriter, status int, contentType string, v any) error {
	body, err := Encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// ReplyProblem answers with a problem, and says when to ask again where that may help.
func ReplyProblem(w http.ResponseWriter, p Problem) error {
	if p.MayRetry() {
		w.Header().Set("Retry-After", p.RetryAfter())
	}
	return Reply(w, p.Status, TypeProblem, p)
}

// BeginStream sends the header of an answer that comes in parts at once, so that the
// client knows that it is connected.
func BeginStream(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Accel-Buffering", "no") // for a proxy that would wait for the whole
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // an error is the next write's too
}

// Encode returns a value as one line of JSON with its line end. HTML in strings stays as
// it is.
func Encode(v any) ([]byte, error) {
	raw, err := strictjson.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return append(raw, '\n'), nil
}
