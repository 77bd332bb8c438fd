package httpapi

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Mount adds another protocol to the API, for which a token needs a scope. Its requests pass the API's rules for
// hosts, origins and tokens, its log, and its bounds on slow clients; panics become problems.
type Mount struct {
	// Patterns are the addresses of the protocol as http.ServeMux writes them: METHOD /path
	// with {name} for a segment, or /path/ for all methods and everything below.
	Patterns []string
	// Handler answers by itself, errors included. It sees whole paths, and may add
	// attributes for the log to the httpwire.Notes of a request.
	Handler http.Handler
	// Refusal makes the body, in the protocol's own form, for requests that the API refuses
	// before the Handler sees them. It is sent as application/json; nil:
	// application/problem+json.
	Refusal func(httpwire.Problem) any
	// TokenHeader is a header that has the token, beside Authorization; "": none has.
	TokenHeader string
	// Open says that no token is needed. Such requests have 30 seconds; others have no time
	// limit.
	Open bool
	// Scope is what a token needs; "": Run.
	Scope access.Scope
	// Page answers what the API refuses, in place of a problem, where browsers ask for a page. Whoever has signed in is
	// known by a cookie, and no token counts. nil: it isn't a page.
	Page func(http.ResponseWriter, *http.Request, httpwire.Problem)
}

// mount serves the routes of a mount.
func (r *routes) mount(m Mount, log requestLog) {
	handle := m.handler(log)
	for _, pattern := range m.Patterns {
		row := route{path: pattern, scope: cmp.Or(m.Scope, access.Run), handle: handle, traits: slow}
		if m.Open {
			row.scope, row.traits = public, open
		}
		if m.Page != nil {
			row.traits |= cookie
		}
		method, path, named := strings.Cut(pattern, " ")
		if !named {
			method, path = "", pattern
		}
		for _, method := range methodsOf(method) {
			for _, row.path = range echoPaths(path) {
				r.add(method, row)
				r.mounts[method+" "+row.path] = m
			}
		}
	}
}

// methodsOf lists the methods of a pattern. "" is all.
func methodsOf(method string) []string {
	switch method {
	case "":
		return methods
	case http.MethodGet:
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{method}
}

var braces = strings.NewReplacer("/{", "/:", "}", "")

// echoPaths converts a path of http.ServeMux to Echo's form.
func echoPaths(path string) []string {
	path = braces.Replace(path)
	if above, tree := strings.CutSuffix(path, "/"); tree {
		return []string{above, path, path + "*"}
	}
	return []string{path}
}

// handler serves a request with the mount's own Handler.
func (m Mount) handler(log requestLog) echo.HandlerFunc {
	return func(c echo.Context) error {
		notes := &httpwire.Notes{}
		defer func() { noted(c, notes) }()
		notes.Report = func(err error, cut bool) {
			noted(c, notes)
			p := problemOf(err)
			p.Run = runOf(c)
			log.failure(c, p, err, cut)
		}
		r := c.Request()
		m.Handler.ServeHTTP(c.Response(), r.WithContext(httpwire.WithNotes(r.Context(), notes)))
		return nil
	}
}

const notesKey = "notes"

func noted(c echo.Context, notes *httpwire.Notes) {
	c.Set(notesKey, notes.Attrs)
	if notes.Run != "" {
		setRun(c, notes.Run)
	}
}

// shaped is a problem in the form of the mount's protocol.
func (m Mount) shaped(p httpwire.Problem) (contentType string, body any) {
	if m.Refusal != nil {
		return httpwire.TypeJSON, m.Refusal(p)
	}
	return httpwire.TypeProblem, p
}
