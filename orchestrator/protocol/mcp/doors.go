package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	sessionTime    = 30 * time.Minute
	maxRequest     = 16 << 20 // bytes
	maxOpening     = 64 << 10 // of a request that may open a session
	sessionHeader  = "Mcp-Session-Id"
	revisionHeader = "Mcp-Protocol-Version"
)

// DefaultSessions is how many sessions a client has at a time where nobody says.
const DefaultSessions = 100

// Path is where a Server is mounted.
const Path = "/mcp"

// Patterns returns the patterns of a Server, for http.ServeMux.
func Patterns() []string {
	return []string{http.MethodPost + " " + Path, http.MethodGet + " " + Path, http.MethodDelete + " " + Path}
}

// doors are the two ways in over HTTP: requests without sessions, and sessions.
type doors struct {
	stateless, sessions bodyDoor
	visits              visits
	admit               func(context.Context) (leave func(), err error)
	opening             sync.Mutex
}

func newDoors(server *sdk.Server, opts Options) *doors {
	refuseNoMethod(server)
	get := func(*http.Request) *sdk.Server { return server }
	return &doors{
		visits: visits{server: server, most: opts.Sessions, byID: map[string]*visit{}}, admit: opts.Admit,
		stateless: bodyDoor{inner: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: 2 * maxRequest,
			DisableLocalhostProtection: true,
		})},
		sessions: bodyDoor{session: true, inner: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
			SessionTimeout: sessionTime, MaxRequestBodyBytes: 2 * maxRequest, DisableLocalhostProtection: true,
			EventStore: newReplays(),
		})},
	}
}

// ServeHTTP implements http.Handler.
func (d *doors) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // a stream without an end of its own
		end, err := httpwire.OpenStream(r.Context())
		if err != nil {
			refuse(w, err)
			return
		}
		defer end()
		ctx, stop := httpwire.Attached(r.Context())
		defer stop()
		r = r.WithContext(ctx)
	}
	if strings.TrimSuffix(r.URL.Path, "/") != Path {
		refuse(w, fault.New(fault.NotFound, "there is nothing at this address").
			WithHint("POST %s speaks the protocol", Path))
		return
	}
	if err := d.serve(w, r); err != nil {
		refuse(w, err)
	}
}

// serve answers a request, or returns why not. A session is looked up before its request's body is
// read.
func (d *doors) serve(w http.ResponseWriter, r *http.Request) error {
	id := r.Header.Get(sessionHeader)
	door := d.sessions
	switch {
	case r.Header.Get(revisionHeader) >= Stateless:
		door = d.stateless
	case id == "" && r.Method == http.MethodPost:
		return d.open(w, r)
	case id != "":
		leave, err := d.visits.enter(id, httpwire.OwnerOf(r.Context()), r.Method)
		if err != nil {
			return err
		}
		defer leave()
	}
	body, err := read(r, maxRequest)
	if err == nil {
		door.serve(w, r, body)
	}
	return err
}

// read reads the body of a POST, for us and for the SDK, which would take an error of ours for a
// mistake of the client's.
func read(r *http.Request, most int64) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, nil
	}
	body, err := io.ReadAll(httpwire.BodyOf(r, most))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// perRequest is in every request of the revisions without sessions.
var perRequest = []byte(`"io.modelcontextprotocol/protocolVersion"`)

// open serves a request that may open a session.
func (d *doors) open(w http.ResponseWriter, r *http.Request) error {
	body, err := read(r, maxOpening)
	if err != nil {
		return err
	}
	if bytes.Contains(body, perRequest) { // without the header that goes with it, which is refused there
		d.stateless.serve(w, r, body)
		return nil
	}
	answer := &answer{header: http.Header{}, status: http.StatusOK}
	if err := d.opened(answer, r, body); err != nil {
		return err
	}
	for key, values := range answer.header {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes()) // whoever asked has gone
	return nil
}

// opened opens one session at a time, so that there are never more than may be.
func (d *doors) opened(answer *answer, r *http.Request, body []byte) error {
	d.opening.Lock()
	defer d.opening.Unlock()
	holder, owner := bytegate.HolderOf(r.Context()), httpwire.OwnerOf(r.Context())
	if err := d.visits.makeRoom(holder); err != nil {
		return err
	}
	leave, err := d.admit(r.Context())
	if err != nil {
		return err
	}
	ctx, deaf := withHearing(r.Context())
	d.sessions.serve(answer, r.WithContext(ctx), body)
	d.visits.add(answer.header.Get(sessionHeader), holder, owner, func() { deaf(); leave() })
	return nil
}

// answer is an answer that is kept until it is whole.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// Flush implements http.Flusher.
func (a *answer) Flush() {}

// refuse answers a request that the SDK doesn't see.
func refuse(w http.ResponseWriter, err error) {
	_ = httpwire.ReplyProblem(w, httpwire.ProblemOf(err)) // whoever asked has gone
}
