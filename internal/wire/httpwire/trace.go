package httpwire

import (
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

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
