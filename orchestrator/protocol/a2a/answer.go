package a2a

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// answer writes nothing before the handler has something to tell: until then the SDK may have
// sent the header of a stream that is none, or an error in words that aren't ours. What it writes
// of errors is dropped. A document is held until it is whole, so that its client has all of it
// when it is sent.
type answer struct {
	http.ResponseWriter
	call   *call
	status int   // that was held back
	begun  bool  // there is something to send
	events bool  // it is a stream
	broken error // why the client did not take all of a stream
	whole  bytes.Buffer
}

// dataOfEvent begins what the SDK writes last of an event, at once.
var dataOfEvent = []byte("data:")

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.begun {
		return
	}
	a.status = status
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		if !a.call.ready.Load() {
			return len(p), nil
		}
		a.begun = true
		if a.events = httpwire.MediaType(a.Header()) == httpwire.TypeEvents; a.events {
			a.ResponseWriter.WriteHeader(http.StatusOK)
		}
	}
	if !a.events {
		return a.whole.Write(p)
	}
	n, err := a.ResponseWriter.Write(p)
	if bytes.HasPrefix(p, dataOfEvent) {
		a.call.sent()
	}
	a.broken = errors.Join(a.broken, err)
	return n, err
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	if a.events {
		a.broken = errors.Join(a.broken, http.NewResponseController(a.ResponseWriter).Flush())
	}
}

// finish sends what was held. The error says that the client did not take all of the answer.
func (a *answer) finish() error {
	if a.events {
		return a.broken
	}
	a.Header().Set("Content-Type", httpwire.TypeJSON)
	a.Header().Set("Content-Length", strconv.Itoa(a.whole.Len()))
	a.ResponseWriter.WriteHeader(http.StatusOK)
	if _, err := a.whole.WriteTo(a.ResponseWriter); err != nil {
		return err
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}
