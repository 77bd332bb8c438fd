package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/access"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// auth knows the server's own token by its digest, so that comparing takes the same time for
// all, and the named ones.
type auth struct {
	none   bool
	digest [sha256.Size]byte
	named  *access.Tokens // nil: there are none
}

func newAuth(opts Options) auth {
	return auth{none: opts.NoAuth, digest: sha256.Sum256([]byte(opts.Token)), named: opts.Tokens}
}

// authorized requires a token on every route that isn't open, known or not, and of a known one
// the route's scope.
func (a *API) authorized(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, known := a.route(c)
		request := c.Request()
		if r.traits&open != 0 || a.auth.none {
			c.SetRequest(request.WithContext(a.known(request.Context(), "")))
			return next(c)
		}
		grant, err := a.auth.grant(c.Request(), c.Response().Header(), a.headers[c.Request().Method+" "+c.Path()])
		if err != nil {
			return err
		}
		c.SetRequest(request.WithContext(a.known(request.Context(), grant.Name)))
		if known {
			if err := grant.Allows(r.scope); err != nil {
				return err
			}
		}
		return next(c)
	}
}

// maxStreams is how many streams a token has at the same time.
const maxStreams = 500

// known returns a context of a request whose client has a token of this name.
func (a *API) known(ctx context.Context, name string) context.Context {
	return httpwire.WithStreams(access.WithClient(ctx, name), a.streams, name)
}

// grant returns what the holder of the request's token may do. The token may stand in a header of
// its own.
func (a auth) grant(r *http.Request, answer http.Header, header string) (access.Grant, error) {
	scheme, token, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	if header != "" && token == "" {
		token = r.Header.Get(header)
	}
	if token == "" {
		answer.Set(echo.HeaderWWWAuthenticate, `Bearer realm="aod"`)
		return access.Grant{}, fault.New(fault.Unauthorized, "the request bears no token").
			WithHint("send the header Authorization: Bearer TOKEN")
	}
	grant, err := a.grantOf(strings.TrimSpace(token))
	if fault.Is(err, fault.Unauthorized) {
		answer.Set(echo.HeaderWWWAuthenticate, `Bearer realm="aod", error="invalid_token"`)
	}
	return grant, err
}

// grantOf returns what the holder of a token may do.
func (a auth) grantOf(token string) (access.Grant, error) {
	if digest := sha256.Sum256([]byte(token)); subtle.ConstantTimeCompare(digest[:], a.digest[:]) == 1 {
		return access.Grant{Scopes: []access.Scope{access.Admin}}, nil
	}
	if a.named != nil {
		if grant, known, err := a.named.Find(token); known || err != nil {
			return grant, err
		}
	}
	return access.Grant{}, fault.New(fault.Unauthorized, "the token is not this server's, or was revoked").
		WithHint("`aod serve` keeps its token in the file server/token of its data directory; `aod token add` makes others")
}

// Authorize is for a protocol that doesn't come over HTTP: it returns a context that knows whose a
// token is, if that may run units. Its errors are Unauthorized and Forbidden faults.
func (a *API) Authorize(ctx context.Context, token string) (context.Context, error) {
	if a.auth.none {
		return a.knownCall(ctx, ""), nil
	}
	if token == "" {
		return ctx, fault.New(fault.Unauthorized, "the call bears no token").WithHint("send the metadata authorization: Bearer TOKEN")
	}
	grant, err := a.auth.grantOf(token)
	if err != nil {
		return ctx, err
	}
	return a.knownCall(ctx, grant.Name), grant.Allows(access.Run)
}

// knownCall is known for a call that doesn't come over HTTP.
func (a *API) knownCall(ctx context.Context, name string) context.Context {
	return httpwire.CountingFor(a.known(ctx, name), a.opts.Memory, holderOf(name))
}
