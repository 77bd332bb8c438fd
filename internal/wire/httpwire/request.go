package httpwire

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

const (
	maxKeyBytes = 255
	maxWait     = 5 * time.Minute
)

// IdempotencyKey returns the key of a request, "" for none. The header Idempotency-Key
// holds 1 to 255 visible ASCII characters and comes once; else the error is a BadRequest fault.
func IdempotencyKey(r *http.Request) (string, error) {
	const header = "Idempotency-Key"
	values := r.Header.Values(header)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	visible := !slices.ContainsFunc([]byte(key), func(b byte) bool { return b <= ' ' || b > '~' })
	if len(values) > 1 || key == "" || len(key) > maxKeyBytes || !visible {
		return "", fault.New(fault.BadRequest, "the header %s is not valid", header).
			WithHint("send one, of 1 to %d visible ASCII characters, such as a UUID", maxKeyBytes)
	}
	return key, nil
}

// OnlyNew reports whether a request asks for what it puts to be new, by the header If-None-Match: *
// (RFC 9110, section 13.1.2). With any other value the error is a BadRequest fault.
func OnlyNew(r *http.Request) (bool, error) {
	values := r.Header.Values("If-None-Match")
	if len(values) == 0 {
		return false, nil
	}
	if len(values) > 1 || values[0] != "*" {
		return false, fault.New(fault.BadRequest, "the header If-None-Match is not valid here").
			WithHint("send *, for what must be new, or leave it out")
	}
	return true, nil
}

// Timeout reads how long a run may take: a duration above 0 as time.ParseDuration reads
// it. "" is 0, which means that none was asked for. The error is a BadRequest fault.
func Timeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fault.New(fault.BadRequest, "the timeout is not valid").WithHint("write a duration such as 30s or 5m")
	}
	return d, nil
}

// Wait reads how long one request waits for the end of a run: 0s to 5m. It reports
// whether the text is valid. A client waits for longer runs by asking again.
func Wait(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0 && d <= maxWait
}

var runIDRule = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsRunID reports whether a text has the form of a run's id, a UUID in lower case. A
// server looks for nothing else, and nothing else becomes the name of a file.
func IsRunID(text string) bool { return runIDRule().MatchString(text) }

var traceRule = lazyregexp.New(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// TraceParent returns the trace context of the caller (W3C), "" for none. One that isn't valid is dropped, as
// the W3C's recommendation has it.
func TraceParent(r *http.Request) string {
	value := r.Header.Get("Traceparent")
	if !traceRule().MatchString(value) {
		return ""
	}
	_, ids, _ := strings.Cut(value, "-")
	trace, rest, _ := strings.Cut(ids, "-")
	span, _, _ := strings.Cut(rest, "-")
	if isZero(trace) || isZero(span) || strings.HasPrefix(value, "ff") {
		return ""
	}
	return value
}

func isZero(digits string) bool { return strings.Trim(digits, "0") == "" }
