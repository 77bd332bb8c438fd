package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/agent-on-demand/aod/api"
)

// Sessions begins, lists and ends sessions. Their turns are runs.
type Sessions struct{ conn *conn }

// Create begins a session with a unit. Its turns are runs that name it: see Submission. They
// work on the project that a function writes as a tar; nil: on none. A Conflict fault says that
// the unit has no sessions.
func (c Sessions) Create(ctx context.Context, unit string, project func(io.Writer) error) (api.Session, error) {
	r := to(http.MethodPost, "sessions")
	if project == nil {
		r = r.with(api.NewSession{Unit: unit})
	} else {
		r = r.withForm([]field{{"unit", unit}}, nil, project)
		r.once = true
	}
	return got[api.Session](ctx, c.conn, r)
}

// Get returns a session as it is now.
func (c Sessions) Get(ctx context.Context, id string) (api.Session, error) {
	return got[api.Session](ctx, c.conn, toSession(http.MethodGet, id))
}

// Close ends a session: its turns are cancelled. One that is closed stays as it is.
func (c Sessions) Close(ctx context.Context, id string) (api.Session, error) {
	return got[api.Session](ctx, c.conn, toSession(http.MethodDelete, id))
}

// SessionFilter selects sessions.
type SessionFilter struct {
	Unit string // "": of all
	Open bool   // only those that aren't closed
}

// List lists sessions, the newest first. It requests pages of them as they are wanted. After
// an error it yields no more.
func (c Sessions) List(ctx context.Context, f SessionFilter) iter.Seq2[api.Session, error] {
	r := to(http.MethodGet, "sessions")
	r.query = url.Values{"open": {strconv.FormatBool(f.Open)}}
	if f.Unit != "" {
		r.query.Set("unit", f.Unit)
	}
	return numbered(ctx, c.conn, r, 1000, func(p api.SessionPage) ([]api.Session, *int64) { return p.Sessions, p.Next })
}
