package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// Hook starts runs of a unit when somebody elsewhere says so, by the webhooks of the specification.
type Hook struct {
	Unit string
	Team string                       // that owns the runs
	Key  func() (webhooks.Key, error) // by which the messages are signed
}

// as returns a context of what the hook of a name does.
func (h Hook) as(ctx context.Context, name string) context.Context {
	return access.WithGrant(ctx, access.Grant{
		Name: api.IdentityOfHook + name, Scopes: []access.Scope{access.Run}, Teams: []string{h.Team},
		Units: []string{h.Unit},
	})
}

// hookHandlers start runs by messages that are signed, and need no token.
type hookHandlers struct {
	svc    *orchestrator.Service
	hooks  func(name string) (Hook, bool) // nil: there are none
	none   webhooks.Key                   // of those that there aren't
	limit  int64                          // of a body
	logger *slog.Logger
}

// start starts a run with the body as its input. The same message again has the same run. Who can't sign is told
// nothing, not even whether there is a hook of the name.
func (h hookHandlers) start(c echo.Context) error {
	raw, err := io.ReadAll(bodyOf(c, h.limit))
	if err != nil {
		return err
	}
	request := c.Request()
	name, hook, key := h.find(c)
	id, good := key.Verify(request.Header, raw, time.Now())
	if !good || name == "" {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Webhook realm="aod"`)
		return fault.New(fault.Unauthorized, "the message is not signed for this hook, or not of now").
			WithHint("sign it by Standard Webhooks with the hook's secret, and send it within five minutes")
	}
	if err := httpwire.RequireJSON(request); err != nil {
		return err
	}
	if _, err := contract.Decode(raw, h.limit); err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	record, joined, err := h.svc.Submit(hook.as(request.Context(), name), spool.Submission{
		Unit: hook.Unit, Input: raw, Key: id, TraceParent: httpwire.TraceParent(request),
	})
	if err != nil {
		return err
	}
	setRun(c, record.ID)
	if joined {
		c.Response().Header().Set("Idempotent-Replayed", "true")
	}
	return reply(c, http.StatusAccepted, map[string]string{"run": record.ID})
}

// find returns the hook of a request with its key; without a name and with a key of nobody's, if there is none.
func (h hookHandlers) find(c echo.Context) (name string, hook Hook, key webhooks.Key) {
	name, err := param(c, "name")
	known := false
	if h.hooks != nil {
		hook, known = h.hooks(name)
	}
	if !known || err != nil {
		return "", Hook{}, h.none
	}
	if key, err = hook.Key(); err != nil {
		h.logger.Error("the secret of a hook can't be read", "hook", name, fault.LogAttr(err))
		return "", Hook{}, h.none
	}
	return name, hook, key
}
