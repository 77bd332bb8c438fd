package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/signins"
)

// auth knows the server's own token by its digest, so that comparing takes the same time for
// all, the named ones, and people whom an issuer knows.
type auth struct {
	none   bool
	digest [sha256.Size]byte
	named  *access.Tokens // nil: there are none
	people *issuer.Issuer // likewise
}

// everything is what the server's own token allows, and a server that asks for none.
var everything = access.Grant{Scopes: []access.Scope{access.Admin}}

func newAuth(opts Options) auth {
	return auth{none: opts.NoAuth, digest: sha256.Sum256([]byte(opts.Token)), named: opts.Tokens, people: opts.People}
}

// authorizer has requests bear tokens that allow them.
type authorizer struct {
	tokens  auth
	signins *signins.Registry
	streams *httpwire.Streams
	rates   *httpwire.Rates
	memory  *bytegate.Gate
	routes  *routes
	logger  *slog.Logger
}

// authorized requires a token on every route that isn't open, known or not, and of a known one
// the route's scope. On a page's route, whoever has signed in stands for the token with which they did.
func (a authorizer) authorized(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		if a.tokens.none {
			ctx := access.WithGrant(request.Context(), everything)
			c.SetRequest(request.WithContext(httpwire.WithStreams(ctx, a.streams, "")))
			return next(c)
		}
		r, known := a.routes.of(c)
		look := a.lookOf(c, r)
		grant, err := look(request.Context())
		if err != nil && r.traits&open == 0 {
			return err
		}
		if err == nil {
			a.tokens.met(grant)
		}
		request = request.WithContext(a.known(request.Context(), grant))
		c.SetRequest(request)
		if err := a.mayAsk(r, known, grant); err != nil {
			return err
		}
		if r.traits&(slow|stream) == 0 || grant.Name == "" && r.traits&cookie == 0 {
			return next(c)
		}
		return a.whileAllowed(c, scoped(look, r.scope), next)
	}
}

// mayAsk returns the fault of a request that the holder of a grant makes too soon, or may not make.
func (a authorizer) mayAsk(r route, known bool, grant access.Grant) error {
	if r.traits&open == 0 {
		if err := a.withinRate(grant); err != nil {
			return err
		}
	}
	if known && r.scope != public {
		return grant.Allows(r.scope)
	}
	return nil
}

// look returns what somebody who asks may do now.
type look func(ctx context.Context) (access.Grant, error)

// scoped is a look that also fails when a scope isn't granted.
func scoped(of look, scope access.Scope) look {
	return func(ctx context.Context) (access.Grant, error) {
		grant, err := of(ctx)
		if err != nil || scope == public {
			return grant, err
		}
		return grant, grant.Allows(scope)
	}
}

// lookOf returns the look at a request's token, or on a page's route at the cookie of whoever has signed in. Where
// there is neither, the answer says what is missing, unless the route needs none.
func (a authorizer) lookOf(c echo.Context, r route) look {
	request, answer := c.Request(), c.Response().Header()
	if r.traits&open != 0 {
		answer = http.Header{}
	}
	if r.traits&cookie != 0 {
		secret := a.signins.SecretOf(request)
		return func(ctx context.Context) (access.Grant, error) { return a.grantOfSecret(ctx, secret) }
	}
	token := tokenOf(request, a.routes.mountOf(c).TokenHeader)
	return inTeam(request.Header.Get(teamHeader), func(ctx context.Context) (access.Grant, error) {
		return a.tokens.grant(ctx, token, answer)
	})
}

// teamHeader has a request be one of a team, by a token of several teams or of the whole server.
const teamHeader = "Aod-Team"

// inTeam is a look at what somebody may do in a team; "": in all of theirs.
func inTeam(team string, of look) look {
	if team == "" {
		return of
	}
	return func(ctx context.Context) (access.Grant, error) {
		grant, err := of(ctx)
		if err != nil {
			return grant, err
		}
		return grant.In(team)
	}
}

// grantOfSecret returns what somebody may do who has signed in.
func (a authorizer) grantOfSecret(ctx context.Context, secret string) (access.Grant, error) {
	proof, err := a.signins.ProofOf(ctx, secret)
	if err != nil {
		return access.Grant{}, err
	}
	return a.tokens.grantOfProof(proof)
}

// withinRate takes one request of those that the holder of a grant may make in a minute.
func (a authorizer) withinRate(grant access.Grant) error {
	return a.rates.Take(grant.Name, httpwire.Rate{Minute: grant.Limits.Rate}, "the token asks too often")
}

// maxStreams is how many streams a token has at the same time.
const maxStreams = 500

// known returns a context of a request of whoever has a grant: what they see, which sessions are
// theirs, and that their streams count.
func (a authorizer) known(ctx context.Context, grant access.Grant) context.Context {
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
func (a auth) grant(ctx context.Context, token string, answer http.Header) (access.Grant, error) {
	if token == "" {
		answer.Set(echo.HeaderWWWAuthenticate, `Bearer realm="aod"`)
		return access.Grant{}, fault.New(fault.Unauthorized, "the request bears no token").
			WithHint("send the header Authorization: Bearer TOKEN")
	}
	grant, err := a.grantOf(ctx, token)
	if fault.Is(err, fault.Unauthorized) {
		answer.Set(echo.HeaderWWWAuthenticate, `Bearer realm="aod", error="invalid_token"`)
	}
	return grant, err
}

// grantOf returns what the holder of a token may do.
func (a auth) grantOf(ctx context.Context, token string) (access.Grant, error) {
	proof, err := a.proofOf(ctx, token)
	if err != nil {
		return access.Grant{}, err
	}
	return a.grantOfProof(proof)
}

// proofOf returns what a token proves: whose it is, if the issuer has made it. One of another kind proves itself, and
// is looked for later.
func (a auth) proofOf(ctx context.Context, token string) (signins.Proof, error) {
	own := signins.ByToken(token)
	if a.people == nil || !issuer.IsToken(token) || a.isOwn(own.Token) {
		return own, nil
	}
	person, err := a.people.Bearer(ctx, token)
	return signins.Proof{Person: person.Text(), Until: person.Until}, err
}

// isOwn reports whether a token is the server's own.
func (a auth) isOwn(token signins.Digest) bool {
	return subtle.ConstantTimeCompare(token[:], a.digest[:]) == 1
}

// grantOfProof returns what somebody may do who has a proof.
func (a auth) grantOfProof(proof signins.Proof) (access.Grant, error) {
	if proof.Person == nil {
		return a.grantOfDigest(proof.Token)
	}
	person, err := issuer.ParsePerson(proof.Person)
	if err != nil || a.people == nil {
		return access.Grant{}, fault.New(fault.Unauthorized, "nobody signs in at this server any more").
			WithHint("ask its operator for a token")
	}
	return a.people.Grant(person)
}

// grantOfDigest is grantOf for the digest of a token.
func (a auth) grantOfDigest(token signins.Digest) (access.Grant, error) {
	if a.isOwn(token) {
		return everything, nil
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

// met notes that the holder of a named token asks for something.
func (a auth) met(grant access.Grant) {
	if a.named != nil {
		a.named.Met(grant)
	}
}

// call is authorized for a call that doesn't come over HTTP: see API.Authorize.
func (a authorizer) call(ctx context.Context, token, team string) (context.Context, error) {
	if a.tokens.none {
		return a.counting(httpwire.WithStreams(access.WithGrant(ctx, everything), a.streams, ""), ""), nil
	}
	if token == "" {
		return ctx, fault.New(fault.Unauthorized, "the call bears no token").
			WithHint("send the metadata authorization: Bearer TOKEN")
	}
	granted := func(ctx context.Context) (access.Grant, error) { return a.tokens.grantOf(ctx, token) }
	allowed := scoped(inTeam(team, granted), access.Run)
	grant, err := allowed(ctx)
	if err != nil {
		return ctx, err
	}
	if err := a.withinRate(grant); err != nil {
		return ctx, err
	}
	a.tokens.met(grant)
	ctx = a.counting(a.known(ctx, grant), grant.Name)
	if grant.Name != "" { // the server's own is never revoked
		ctx, _ = watched(ctx, allowed) // it ends with the call
	}
	return ctx, nil
}

// bearer returns a context of whoever bears a token, whether it allows anything or not.
func (a authorizer) bearer(ctx context.Context, token string) context.Context {
	grant, _ := a.tokens.grantOf(ctx, token) // whom nobody knows is nobody
	return access.WithGrant(ctx, grant)
}

// counting has what a call holds that doesn't come over HTTP count for its token.
func (a authorizer) counting(ctx context.Context, name string) context.Context {
	return bytegate.Counting(ctx, a.memory, holderOf(name))
}

// grantLook is how often it is looked whether a request that lasts is still allowed.
const grantLook = time.Second

// watched returns a context that ends when a look finds that something isn't allowed any more, with the fault
// that says so as its cause. It looks by a clock of its own: a request that is silent doesn't come
// past here again, and neither does one that has much to tell. end must be called, or ctx end.
func watched(ctx context.Context, allowed look) (_ context.Context, end context.CancelCauseFunc) {
	ctx, end = context.WithCancelCause(ctx)
	go func() {
		clock := time.NewTicker(grantLook)
		defer clock.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-clock.C:
			}
			if _, err := allowed(ctx); err != nil && ctx.Err() == nil {
				end(err)
				return
			}
		}
	}()
	return ctx, end
}

// whileAllowed serves a request that may last, for as long as it is allowed. A stream of
// events ends with a comment that says why.
func (a authorizer) whileAllowed(c echo.Context, allowed look, next echo.HandlerFunc) error {
	request := c.Request()
	defer c.SetRequest(request) // the outer handlers must not take this end for the client's
	ctx, end := watched(request.Context(), allowed)
	defer end(nil)
	c.SetRequest(request.WithContext(ctx))
	err := next(c)
	if ctx.Err() == nil || request.Context().Err() != nil {
		return err
	}
	why := context.Cause(ctx)
	a.logger.InfoContext(ctx, "request ended before its time", "route", a.routes.nameOf(c), "token",
		access.ClientOf(ctx), fault.LogAttr(why))
	if !c.Response().Committed {
		return why
	}
	if strings.HasPrefix(c.Response().Header().Get(echo.HeaderContentType), httpwire.TypeEvents) {
		_ = httpwire.NewEventWriter(c.Response()).Comment(fault.Public(why).Msg) // the client may have gone
	}
	return err
}
