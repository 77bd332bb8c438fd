package httpapi

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
)

func (a *API) listModels(c echo.Context) error {
	return reply(c, http.StatusOK, map[string]any{"models": a.svc.Models()})
}

func (a *API) getModelCall(c echo.Context, id string) error {
	text, err := param(c, "n")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return fault.New(fault.NotFound, "the run has no such model call").WithHint("GET /v1/runs/ID/models lists them")
	}
	exchange, err := a.svc.ModelExchange(c.Request().Context(), id, n)
	return replied(c, exchange, err)
}
