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
	"github.com/agent-on-demand/aod/fault"
)

// NewSession begins a session with a unit. Its turns are runs that name it: see Submission. They
// work on the project that a function writes as a tar; nil: on none. A Conflict fault says that
// the unit has no sessions.
func (c *Client) NewSession(ctx context.Context, unit string, project func(io.Writer) error) (session api.Session, err error) {
	r := request{method: http.MethodPost, path: []string{"v1", "sessions"}, header: map[string]string{"Content-Type": "application/json"}}
	if project == nil {
		r.body, err = jsonBody(api.NewSession{Unit: unit})
	} else {
		r.slow, r.once = true, true
		r.body, r.header["Content-Type"], err = formOf([]field{{"unit", unit}}, nil, project)
	}
	if err != nil {
		return session, err
	}
	_, err = c.call(ctx, r, &session)
	return session, err
}

// SessionChanges is Changes for what the turns of a session made of its workspace so far, with the
// run that has them: Patch and ChangedFile take that.
func (c *Client) SessionChanges(ctx context.Context, id string) (run string, changes []byte, err error) {
	if err := checkID(id); err != nil {
		return "", nil, err
	}
	response, err := c.ask(ctx, request{method: http.MethodGet, path: []string{"v1", "sessions", id, "changes"}, slow: true})
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
	return c.session(ctx, http.MethodGet, id)
}

// CloseSession ends a session: its turns are cancelled. One that is closed stays as it is.
func (c *Client) CloseSession(ctx context.Context, id string) (api.Session, error) {
	return c.session(ctx, http.MethodDelete, id)
}

func (c *Client) session(ctx context.Context, method, id string) (session api.Session, err error) {
	if err := checkID(id); err != nil {
		return session, err
	}
	_, err = c.call(ctx, request{method: method, path: []string{"v1", "sessions", id}}, &session)
	return session, err
}

// SessionFilter selects sessions.
type SessionFilter struct {
	Unit string // "": of all
	Open bool   // only those that aren't closed
}

// Sessions lists sessions, the newest first. It requests pages of them as they are wanted. After
// an error it yields no more.
func (c *Client) Sessions(ctx context.Context, f SessionFilter) iter.Seq2[api.Session, error] {
	return func(yield func(api.Session, error) bool) {
		query := url.Values{"open": {strconv.FormatBool(f.Open)}}
		if f.Unit != "" {
			query.Set("unit", f.Unit)
		}
		for after := int64(0); ; {
			var page api.SessionPage
			if _, err := c.call(ctx, pageOf(after, query, "v1", "sessions"), &page); err != nil {
				yield(api.Session{}, err)
				return
			}
			for _, session := range page.Sessions {
				if !yield(session, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			after = *page.Next
		}
	}
}
