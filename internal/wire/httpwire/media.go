package httpwire

import (
	"mime"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
)

// The media types of our wires.
const (
	TypeJSON    = "application/json"
	TypeProblem = "application/problem+json"
	TypeEvents  = "text/event-stream"
)

// MediaType returns the media type of a message, in lower case and without parameters;
// "" where the header Content-Type has none that can be read.
func MediaType(header http.Header) string {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// RequireJSON returns a BadRequest fault unless the body of a request is called JSON. A
// browser sends bodies of other types for any page without asking.
func RequireJSON(r *http.Request) error {
	if MediaType(r.Header) == TypeJSON {
		return nil
	}
	return fault.New(fault.BadRequest, "the body's Content-Type is not application/json").
		WithHint("send the header Content-Type: application/json")
}
