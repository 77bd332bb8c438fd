package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/signins"
)

// SignIn signs somebody in at the page with a token. The error is an Unauthorized fault if it isn't the server's.
func (a *API) SignIn(ctx context.Context, token string) (signins.Session, error) {
	proof, err := a.auth.tokens.proofOf(ctx, token)
	if err == nil {
		_, err = a.auth.tokens.grantOfProof(proof)
	}
	if err != nil {
		return signins.Session{}, err
	}
	return a.auth.signins.Begin(ctx, proof)
}

// signinHandlers let browsers sign in at the page.
type signinHandlers struct {
	registry *signins.Registry
	tokens   auth
	noPage   bool
}

// login tells what a client needs to have somebody sign in at the issuer.
func (h signinHandlers) login(c echo.Context) error {
	if h.tokens.people == nil {
		return fault.New(fault.NotFound, "nobody signs in at this server: it takes tokens").
			WithHint("ask its operator for one: `aod token add`")
	}
	return reply(c, http.StatusOK, h.tokens.people.Login())
}

// code answers with a link by which a browser signs in once, as the holder of the request's token.
func (h signinHandlers) code(c echo.Context) error {
	if h.noPage {
		return errNoPage()
	}
	if h.tokens.none {
		return reply(c, http.StatusCreated, api.SigninCode{Path: "/ui/"})
	}
	proof, err := h.tokens.proofOf(c.Request().Context(), tokenOf(c.Request(), ""))
	if err != nil {
		return err
	}
	text, until, err := h.registry.Code(proof)
	if err != nil {
		return err
	}
	until = until.UTC().Truncate(time.Millisecond)
	return reply(c, http.StatusCreated, api.SigninCode{Path: "/ui/login?code=" + text, ExpiresAt: &until})
}

// errNoPage says why nobody finds the page.
func errNoPage() error {
	return fault.New(fault.NotFound, "this server has no page").
		WithHint("its program was built with the tag no_ui; `aod ps` shows what it runs")
}

// noPage says so where the page would be.
func noPage() Mount {
	return Mount{
		Patterns: []string{"/ui/"}, Open: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = httpwire.ReplyProblem(w, problemOf(errNoPage())) // the browser may have gone
		}),
	}
}
