package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

// modelHandlers answer what is asked of models, and of what runs asked them.
type modelHandlers struct{ svc *orchestrator.Service }

func (h modelHandlers) list(c echo.Context) error {
	known, _ := orchestrator.FeatureOf[*models.Feature](h.svc)
	return reply(c, http.StatusOK, map[string]any{"models": known.List()})
}

func (h modelHandlers) calls(ctx context.Context, id string, after int64, limit int) (api.ModelCallPage, error) {
	dir, err := h.svc.Files.RunDir(ctx, id)
	if err != nil {
		return api.ModelCallPage{}, err
	}
	return models.ReadCallPage(dir, after, limit)
}

func (h modelHandlers) call(c echo.Context, id string) error {
	text, err := param(c, "n")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return fault.New(fault.NotFound, "the run has no such model call").WithHint("`aod runs ID --models` lists them")
	}
	dir, err := h.svc.Files.RunDir(c.Request().Context(), id)
	if err != nil {
		return err
	}
	exchange, err := models.ReadExchange(dir, n)
	return replied(c, exchange, err)
}
