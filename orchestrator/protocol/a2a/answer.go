package a2a

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/jsonrpc"
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
	rpc    bool  // it is JSON-RPC, whose id the SDK carries
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
	text := p
	data, isEvent := bytes.CutPrefix(p, dataOfEvent)
	if isEvent {
		text = slices.Concat(dataOfEvent, a.restored(data))
	}
	_, err := a.ResponseWriter.Write(text)
	if isEvent {
		a.call.sent()
	}
	a.broken = errors.Join(a.broken, err)
	return len(p), err
}

// restored is a text of the SDK with the id that the client wrote.
func (a *answer) restored(text []byte) []byte {
	if a.rpc {
		text, _ = jsonrpc.Restored(text)
	}
	return text
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
	text := a.restored(a.whole.Bytes())
	a.Header().Set("Content-Type", httpwire.TypeJSON)
	a.Header().Set("Content-Length", strconv.Itoa(len(text)))
	a.ResponseWriter.WriteHeader(http.StatusOK)
	if _, err := a.ResponseWriter.Write(text); err != nil {
		return err
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}
