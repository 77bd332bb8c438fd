package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// NewSession begins a session with a unit. Its turns are runs that name it: see Submission. They
// work on the project that a function writes as a tar; nil: on none. A Conflict fault says that
// the unit has no sessions.
func (c *Client) NewSession(ctx context.Context, unit string, project func(io.Writer) error) (api.Session, error) {
	r := to(http.MethodPost, "sessions")
	if project == nil {
		r = r.with(api.NewSession{Unit: unit})
	} else {
		r = r.withForm([]field{{"unit", unit}}, nil, project)
		r.once = true
	}
	return got[api.Session](ctx, c, r)
}

// SessionChanges is Changes for what the turns of a session made of its workspace so far, with the
// run that has them: Patch and ChangedFile take that.
func (c *Client) SessionChanges(ctx context.Context, id string) (run string, changes []byte, err error) {
	response, err := c.ask(ctx, toSession(http.MethodGet, id, "changes"))
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	run, _ = strings.CutPrefix(response.Header.Get("Content-Location"), "/v1/runs/")
	run, _, _ = strings.Cut(run, "/")
	if err := checkID(run); err != nil {
		return "", nil, fault.New(fault.Internal, "the server doesn't say which turn made the changes")
	}
	changes, err = c.readChanges(ctx, response.Body)
	return run, changes, err
}

// Session returns a session as it is now.
func (c *Client) Session(ctx context.Context, id string) (api.Session, error) {
	return got[api.Session](ctx, c, toSession(http.MethodGet, id))
}

// CloseSession ends a session: its turns are cancelled. One that is closed stays as it is.
func (c *Client) CloseSession(ctx context.Context, id string) (api.Session, error) {
	return got[api.Session](ctx, c, toSession(http.MethodDelete, id))
}

// toSession is a request about a session.
func toSession(method, id string, more ...string) request {
	r := to(method, append([]string{"sessions", id}, more...)...)
	r.err = checkID(id)
	return r
}

// SessionFilter selects sessions.
type SessionFilter struct {
	Unit string // "": of all
	Open bool   // only those that aren't closed
}

// Sessions lists sessions, the newest first. It requests pages of them as they are wanted. After
// an error it yields no more.
func (c *Client) Sessions(ctx context.Context, f SessionFilter) iter.Seq2[api.Session, error] {
	r := to(http.MethodGet, "sessions")
	r.query = url.Values{"open": {strconv.FormatBool(f.Open)}}
	if f.Unit != "" {
		r.query.Set("unit", f.Unit)
	}
	return numbered(ctx, c, r, 1000, func(p api.SessionPage) ([]api.Session, *int64) { return p.Sessions, p.Next })
}
