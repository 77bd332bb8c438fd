package a2apeer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Bounds of what is read from an agent, in bytes.
const (
	MaxCard    = 1 << 20   // its card
	MaxAnswer  = 16 << 20  // an answer that isn't a stream
	MaxEvent   = 9 << 20   // an event of a stream
	MaxStream  = 256 << 20 // a stream as a whole
	MaxTask    = 32 << 20  // what the parts of a task hold together
	maxRefusal = 64 << 10  // the body of an error; the rest is ignored
	maxID      = 256       // an id of a task or a context
	maxWords   = 4 << 10   // a text that is only shown
)

// Bounds of how many there may be.
const (
	MaxArtifacts  = 1_000   // of a task
	maxParts      = 10_000  // of a task
	maxEvents     = 100_000 // of a stream
	maxValues     = 250_000 // of one JSON document: texts, numbers, arrays, objects
	maxInterfaces = 64      // of a card
)

// Bounds of time.
const (
	CardTime    = 10 * time.Second // for a card
	CallTime    = 30 * time.Second // for a question about a task
	silenceTime = 90 * time.Second // in which a stream says nothing, not even a comment
)

// form is what an answer has to be.
type form int

const (
	document form = iota // one JSON document
	events               // a stream of them
	anything             // a file
)

// exchange is one request with its answer, as guard sees them.
type exchange struct {
	form    form
	most    int64             // bytes of a document
	silence *httpwire.Silence // of a stream
	sent    atomic.Bool       // the agent may have the request

	status    int        // of the answer; 0: there is none
	violation *Violation // of the answer
	lost      error      // why there is no whole answer, as the transport says it
}

type exchangeKey struct{}

// begin returns a context whose requests x tells of.
func (x *exchange) begin(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// guard bounds what comes back of the requests to an agent.
type guard struct{ next http.RoundTripper }

var errUnguarded = errors.New("nobody hears of this request")

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	x, known := req.Context().Value(exchangeKey{}).(*exchange)
	if !known {
		return nil, errUnguarded
	}
	trace := &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }}
	response, err := g.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		if !errors.Is(err, peer.ErrForeign) {
			x.lost = err
		}
		return nil, err
	}
	x.status = response.StatusCode
	response.Body = &bodyOf{response.Body, x}
	if err := x.bound(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// bound makes the answer's body one that keeps the bounds. The SDK takes 200 for a success and nothing else.
func (x *exchange) bound(response *http.Response) error {
	switch {
	case response.StatusCode/100 != 2:
		if strings.HasSuffix(httpwire.MediaType(response.Header), "+json") {
			response.Header.Set("Content-Type", "application/json") // the SDK reads no other
		}
		return x.boundRefusal(response)
	case x.form == anything:
		return nil
	}
	response.StatusCode = http.StatusOK
	if x.form == events {
		in := x.silence.Reader(response.Body, silenceTime)
		if httpwire.MediaType(response.Header) == httpwire.TypeEvents {
			limits := httpwire.EventLimits{
				Line: MaxEvent, Event: MaxEvent, Stream: mostStream,
				Whose: "the stream of the agent",
			}
			response.Body = withClose(&eventBody{x: x, in: httpwire.NewEventReader(in, limits)}, response.Body)
			return nil
		}
		return x.boundDocument(response, in, "data: ", "\n\n") // an error before the stream began
	}
	return x.boundDocument(response, response.Body, "", "")
}

// boundRefusal reads why the agent refuses. Of JSON-RPC the SDK reads an error with the status 200 alone.
func (x *exchange) boundRefusal(response *http.Response) error {
	in := io.LimitReader(response.Body, maxRefusal)
	if x.form == events {
		in = io.LimitReader(x.silence.Reader(response.Body, silenceTime), maxRefusal)
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	response.Body = withClose(bytes.NewReader(raw), response.Body)
	if response.StatusCode < http.StatusBadRequest {
		return nil
	}
	var answer struct {
		Version string          `json:"jsonrpc"`
		Error   json.RawMessage `json:"error"`
	}
	isError := json.Unmarshal(raw, &answer) == nil && answer.Version != "" && answer.Error != nil
	if !isError {
		return nil
	}
	response.StatusCode = http.StatusOK // exchange.status is what it was
	if x.form == events {
		return x.boundDocument(response, bytes.NewReader(raw), "data: ", "\n\n")
	}
	return x.boundDocument(response, bytes.NewReader(raw), "", "")
}

// boundDocument reads a document whole and puts text around it.
func (x *exchange) boundDocument(response *http.Response, from io.Reader, before, after string) error {
	raw, err := io.ReadAll(io.LimitReader(from, x.most+1))
	if err != nil {
		return err
	}
	if int64(len(raw)) > x.most {
		return x.breaks(RuleSize, "an answer has more than %d bytes", x.most)
	}
	raw, err = x.checked(raw)
	if err != nil {
		return err
	}
	whole := bytes.NewReader(append(append([]byte(before), raw...), after...))
	response.Body = withClose(whole, response.Body)
	return nil
}

// checked returns a document without line ends, if it is one and has no more values than are taken.
func (x *exchange) checked(raw []byte) ([]byte, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil // what needs one says so
	}
	if err := strictjson.Check(raw, strictjson.Rules{Ambiguous: true, Unbounded: true, Values: maxValues}); err != nil {
		return nil, x.breaks(RuleAnswer, "an answer isn't a JSON document of at most %d values and %d levels",
			maxValues, strictjson.MaxDepth)
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" ")), nil
}

// breaks notes which rule the answer breaks, and returns that as its error.
func (x *exchange) breaks(rule, format string, args ...any) error {
	x.violation = broken(rule, format, args...)
	return x.violation
}

// The bounds of a stream's events and bytes and of a task's bytes, but in tests.
var (
	mostEvents, mostBytes = maxEvents, MaxTask

	mostStream int64 = MaxStream
)

// eventBody gives the SDK the events of a stream, each of them checked, as lines of a form that it reads.
type eventBody struct {
	x    *exchange
	in   *httpwire.EventReader
	rest []byte // of an event that was read in part
	seen int
}

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		e, err := b.in.Next()
		if fault.Is(err, fault.TooLarge) {
			return 0, b.x.breaks(RuleSize, "%s", fault.Public(err).Msg)
		}
		if err != nil {
			return 0, err
		}
		if b.seen++; b.seen > mostEvents {
			return 0, b.x.breaks(RuleSize, "a stream has more than %d events", mostEvents)
		}
		raw, err := b.x.checked([]byte(e.Data))
		if err != nil {
			return 0, err
		}
		b.rest = append(append([]byte("data: "), raw...), "\n\n"...)
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// bodyOf is the body of an answer. It notes why it broke off.
type bodyOf struct {
	io.ReadCloser
	x *exchange
}

// Read implements io.Reader.
func (b *bodyOf) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.x.lost = err
	}
	return n, err
}

// withClose returns a body that is read from one place and closed at another.
func withClose(r io.Reader, c io.Closer) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{r, c}
}
