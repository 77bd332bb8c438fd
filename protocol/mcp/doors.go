package mcp

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

const (
	maxSessions    = 100
	sessionTime    = 30 * time.Minute
	maxRequest     = 16 << 20 // bytes
	sessionHeader  = "Mcp-Session-Id"
	revisionHeader = "Mcp-Protocol-Version"
)

// Path is where a Server is mounted.
const Path = "/mcp"

// Patterns returns the patterns of a Server, for http.ServeMux.
func Patterns() []string {
	return []string{http.MethodPost + " " + Path, http.MethodGet + " " + Path, http.MethodDelete + " " + Path}
}

// doors are the two ways in over HTTP: requests without sessions, and sessions.
type doors struct {
	stateless, sessions *sdk.StreamableHTTPHandler
	server              *sdk.Server
	opening             *sync.Mutex
}

func newDoors(server *sdk.Server) doors {
	get := func(*http.Request) *sdk.Server { return server }
	return doors{
		server: server, opening: &sync.Mutex{},
		stateless: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxRequest, DisableLocalhostProtection: true,
		}),
		sessions: sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
			SessionTimeout: sessionTime, MaxRequestBodyBytes: maxRequest, DisableLocalhostProtection: true,
		}),
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet { // a stream without an end of its own
		ctx, stop := httpwire.Attached(r.Context())
		defer stop()
		r = r.WithContext(ctx)
	}
	switch {
	case strings.TrimSuffix(r.URL.Path, "/") != Path:
		refuse(w, fault.New(fault.NotFound, "there is nothing at this address").WithHint("POST %s speaks the protocol", Path))
	case r.Header.Get(revisionHeader) >= Stateless:
		s.doors.stateless.ServeHTTP(w, r)
	case r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "":
		s.doors.open(w, r)
	default:
		s.doors.sessions.ServeHTTP(w, r)
	}
}

// perRequest is in every request of the revisions without sessions.
var perRequest = []byte(`"io.modelcontextprotocol/protocolVersion"`)

// open serves a request that may open a session, one at a time, so that there are never more
// than may be.
func (d doors) open(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(httpwire.BodyOf(r, maxRequest))
	if err != nil {
		refuse(w, err)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, perRequest) { // without the header that goes with it, which is refused there
		d.stateless.ServeHTTP(w, r)
		return
	}
	answer := &answer{header: http.Header{}, status: http.StatusOK}
	if err := d.opened(answer, r); err != nil {
		refuse(w, err)
		return
	}
	for key, values := range answer.header {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body.Bytes()) // whoever asked has gone
}

func (d doors) opened(answer *answer, r *http.Request) error {
	d.opening.Lock()
	defer d.opening.Unlock()
	open := 0
	for session := range d.server.Sessions() {
		if session.ID() != "" {
			open++
		}
	}
	if open >= maxSessions {
		return fault.New(fault.Busy, "there are %d sessions, and no more at a time", maxSessions).
			WithHint("end sessions with DELETE, or ask without a session: protocol revision %s", Stateless)
	}
	d.sessions.ServeHTTP(answer, r)
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

// refuse answers a request that no session took.
func refuse(w http.ResponseWriter, err error) {
	p := httpwire.ProblemOf(err)
	if fault.Is(err, fault.Busy) {
		p.Status = http.StatusServiceUnavailable
	}
	_ = httpwire.ReplyProblem(w, p) // whoever asked has gone
}
