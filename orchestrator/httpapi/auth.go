package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/fault"
)

// auth holds the digest of the token, so that comparing takes the same time for all.
type auth struct {
	none   bool
	digest [sha256.Size]byte
}

func newAuth(opts Options) auth {
	return auth{none: opts.NoAuth, digest: sha256.Sum256([]byte(opts.Token))}
}

// authorized requires the token on every route that isn't open, known or not.
func (a *API) authorized(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if t, _ := a.traits(c); t&open != 0 {
			return next(c)
		}
		if err := a.auth.check(c.Request(), c.Response().Header()); err != nil {
			return err
		}
		return next(c)
	}
}

func (a auth) check(r *http.Request, answer http.Header) error {
	if a.none {
		return nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		answer.Set(echo.HeaderWWWAuthenticate, `Bearer realm="aod"`)
		return fault.New(fault.Unauthorized, "the request bears no token").
			WithHint("send the header Authorization: Bearer TOKEN")
	}
	digest := sha256.Sum256([]byte(strings.TrimSpace(token)))
	if subtle.ConstantTimeCompare(digest[:], a.digest[:]) != 1 {
		answer.Set(echo.HeaderWWWAuthenticate, `Bearer realm="aod", error="invalid_token"`)
		return fault.New(fault.Unauthorized, "the token is not this server's").
			WithHint("`aod serve` keeps its token in the file server/token of its data directory")
	}
	return nil
}
