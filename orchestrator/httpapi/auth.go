package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
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
		request := c.Request()
		if a.auth.none {
			c.SetRequest(request.WithContext(httpwire.WithStreams(request.Context(), a.streams, "")))
			return next(c)
		}
		r, known := a.route(c)
		answer := c.Response().Header()
		if r.traits&open != 0 {
			answer = http.Header{} // it needs none, so that it isn't asked for
		}
		token := tokenOf(request, a.headers[request.Method+" "+c.Path()])
		grant, err := a.auth.grant(token, answer)
		if err != nil && r.traits&open == 0 {
			return err
		}
		request = request.WithContext(a.known(request.Context(), grant))
		c.SetRequest(request)
		if known && r.scope != public {
			if err := grant.Allows(r.scope); err != nil {
				return err
			}
		}
		if r.traits&(slow|stream) == 0 || grant.Name == "" {
			return next(c)
		}
		return a.whileAllowed(c, token, r.scope, next)
	}
}

// maxStreams is how many streams a token has at the same time.
const maxStreams = 500

// known returns a context of a request of whoever has a grant: what they see, which sessions are
// theirs, and that their streams count.
func (a *API) known(ctx context.Context, grant access.Grant) context.Context {
	ctx = httpwire.WithOwner(access.WithGrant(ctx, grant), grant.Holder())
	return httpwire.WithStreams(ctx, a.streams, grant.Name)
}

// tokenOf returns the token that a request bears; "": none. It may stand in a header of its own.
func tokenOf(r *http.Request, header string) string {
	scheme, token, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	if header != "" && token == "" {
		token = r.Header.Get(header)
	}
	return strings.TrimSpace(token)
}

// grant returns what the holder of a request's token may do. Where it is none, the answer says what
// is missing.
func (a auth) grant(token string, answer http.Header) (access.Grant, error) {
	if token == "" {
		answer.Set(echo.HeaderWWWAuthenticate, `Bearer realm="aod"`)
		return access.Grant{}, fault.New(fault.Unauthorized, "the request bears no token").
			WithHint("send the header Authorization: Bearer TOKEN")
	}
	grant, err := a.grantOf(token)
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
		WithHint("`aod serve` keeps its token in the file server/token of its data directory; `aod token add` " +
			"makes others")
}

// allowed is grantOf for a token that has to have a scope.
func (a auth) allowed(token string, scope access.Scope) (access.Grant, error) {
	grant, err := a.grantOf(token)
	if err != nil {
		return access.Grant{}, err
	}
	return grant, grant.Allows(scope)
}

// Authorize is for a protocol that doesn't come over HTTP: it returns a context that knows whose a
// token is, if that may run units. ctx has to end with the call. The context ends before it, with a
// fault as its cause, when the token is revoked. The errors are Unauthorized and Forbidden faults.
func (a *API) Authorize(ctx context.Context, token string) (context.Context, error) {
	if a.auth.none {
		return a.counting(httpwire.WithStreams(ctx, a.streams, ""), ""), nil
	}
	if token == "" {
		return ctx, fault.New(fault.Unauthorized, "the call bears no token").
			WithHint("send the metadata authorization: Bearer TOKEN")
	}
	grant, err := a.auth.allowed(token, access.Run)
	if err != nil {
		return ctx, err
	}
	ctx = a.counting(a.known(ctx, grant), grant.Name)
	if grant.Name != "" { // the server's own is never revoked
		ctx, _ = a.auth.watched(ctx, token, access.Run) // it ends with the call
	}
	return ctx, nil
}

// counting has what a call holds that doesn't come over HTTP count for its token.
func (a *API) counting(ctx context.Context, name string) context.Context {
	return bytegate.Counting(ctx, a.opts.Memory, holderOf(name))
}
