package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
)

// webhookHandlers answer what is asked of webhooks.
type webhookHandlers struct{ svc *orchestrator.Service }

func (h webhookHandlers) feature() *webhooks.Feature {
	found, _ := orchestrator.FeatureOf[*webhooks.Feature](h.svc)
	return found
}

// webhookID returns the id in the path.
func webhookID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !httpwire.IsRunID(id) {
		return "", fault.New(fault.NotFound, "there is no webhook of this id").WithHint("`aod webhook ls` lists them")
	}
	return id, nil
}

// add makes a webhook. Its secret is in this answer, and in no other one.
func (h webhookHandlers) add(c echo.Context) error {
	var asked api.WebhookRequest
	err := readObject(c, httpwire.SmallBody, member{"url", &asked.URL}, member{"secret", &asked.Secret},
		member{"run", &asked.Run}, member{"events", &asked.Events})
	if err != nil {
		return err
	}
	made, err := h.feature().Add(c.Request().Context(), asked)
	if err == nil {
		c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	}
	return stored(c, "/v1/webhooks/"+made.ID, made, true, err)
}

// rotate gives a webhook another secret. A request without a body has one made, and the usual grace.
func (h webhookHandlers) rotate(c echo.Context, id string) error {
	var asked api.WebhookRotation
	if err := readOptional(c, member{"secret", &asked.Secret}, member{"grace", &asked.Grace}); err != nil {
		return err
	}
	made, err := h.feature().Rotate(c.Request().Context(), id, asked)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return reply(c, http.StatusOK, made)
}

func (h webhookHandlers) list(ctx context.Context, _ string, before int64, limit int) (api.WebhookPage, error) {
	return h.feature().List(ctx, before, limit)
}

func (h webhookHandlers) get(ctx context.Context, id string) (api.Webhook, error) {
	return h.feature().Get(ctx, id)
}

func (h webhookHandlers) test(ctx context.Context, id string) (api.WebhookTest, error) {
	return h.feature().Test(ctx, id)
}

func (h webhookHandlers) remove(c echo.Context, id string) error {
	if err := h.feature().Delete(c.Request().Context(), id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
