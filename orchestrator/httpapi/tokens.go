package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
)

// tokenHandlers answer who asks, and let administrators manage the tokens with names.
type tokenHandlers struct {
	svc     *orchestrator.Service
	tokens  *access.Tokens // nil: there are none
	version string
}

func (h tokenHandlers) whoami(c echo.Context) error {
	grant := access.GrantOf(c.Request().Context())
	return reply(c, http.StatusOK, api.Whoami{
		TokenGrant: grant.Shown(), Identity: api.IdentityOf(grant.Name), Groups: grant.Groups,
		Version: h.version,
	})
}

// keeper manages the tokens that the client of a request may manage.
func (h tokenHandlers) keeper(ctx context.Context) (access.Keeper, error) {
	if h.tokens == nil {
		return access.Keeper{}, fault.New(fault.NotFound, "this server has no tokens with names").
			WithHint("its own token allows everything")
	}
	return h.tokens.KeeperFor(ctx), nil
}

func (h tokenHandlers) list(c echo.Context) error {
	keeper, err := h.keeper(c.Request().Context())
	if err != nil {
		return err
	}
	all, err := keeper.List()
	shown, now := make([]api.Token, 0, len(all)), time.Now()
	for _, token := range all {
		shown = append(shown, token.Shown(now))
	}
	return replied(c, map[string][]api.Token{"tokens": shown}, err)
}

// add makes a token. It is in this answer, and in no other one.
func (h tokenHandlers) add(c echo.Context) error {
	var asked api.TokenRequest
	err := readObject(c, httpwire.SmallBody, member{"name", &asked.Name}, member{"scopes", &asked.Scopes},
		member{"teams", &asked.Teams}, member{"units", &asked.Units}, member{"rate", &asked.Rate},
		member{"runs", &asked.Runs}, member{"expires", &asked.Expires})
	if err != nil {
		return err
	}
	grant, err := access.GrantAsked(asked, time.Now())
	if err != nil {
		return err
	}
	keeper, err := h.keeper(c.Request().Context())
	if err != nil {
		return err
	}
	token, err := keeper.Add(grant)
	err = h.did(c.Request().Context(), err, "add", grant.Name)
	return secret(c, http.StatusCreated, token, err)
}

// secret answers with a token that was made, which nothing on the way may keep.
func secret(c echo.Context, status int, token string, err error) error {
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return reply(c, status, map[string]string{"token": token})
}

// tokenName returns the name of a token in the path.
func tokenName(c echo.Context) (string, error) { return param(c, "name") }

// rotate makes another token in place of one. A request without a body has the grace that is usual.
func (h tokenHandlers) rotate(c echo.Context, name string) error {
	var text string
	if err := readOptional(c, member{"grace", &text}); err != nil {
		return err
	}
	grace, err := access.ParseGrace(text)
	if err != nil {
		return err
	}
	keeper, err := h.keeper(c.Request().Context())
	if err != nil {
		return err
	}
	token, err := keeper.Rotate(name, grace)
	err = h.did(c.Request().Context(), err, "rotate", name)
	return secret(c, http.StatusOK, token, err)
}

// remove revokes a token; its schedules may go to another one before.
func (h tokenHandlers) remove(c echo.Context, name string) error {
	q := queryOf(c, "give")
	give := q.text("give")
	if q.err != nil {
		return q.err
	}
	ctx := c.Request().Context()
	keeper, err := h.keeper(ctx)
	if err != nil {
		return err
	}
	removed := api.RemovedToken{Name: name}
	if _, err := keeper.Get(name); err != nil {
		return err
	}
	if give != "" {
		if removed.Given, err = h.give(ctx, keeper, name, give); err != nil {
			return err
		}
	}
	return replied(c, removed, h.did(ctx, keeper.Remove(name), "remove", name))
}

// did has the audit know of a change, unless that failed.
func (h tokenHandlers) did(ctx context.Context, err error, verb, name string) error {
	if err != nil {
		return err
	}
	return h.svc.Audit.Did(ctx, verb, "token", name)
}

// give has the schedules of one token belong to another one.
func (h tokenHandlers) give(ctx context.Context, keeper access.Keeper, from, to string) (int, error) {
	receiver, err := keeper.Get(to)
	if err != nil {
		return 0, err
	}
	if from == to {
		return 0, fault.New(fault.Input, "the token %q is the one that is revoked", to).WithHint("name another one")
	}
	scheduler, _ := orchestrator.FeatureOf[*schedules.Scheduler](h.svc)
	return scheduler.Give(ctx, from, receiver.Grant())
}
