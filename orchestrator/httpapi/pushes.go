package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

func (a *API) listPushes(c echo.Context) error {
	id, err := runID(c)
	if err != nil {
		return err
	}
	pushes, err := a.svc.Pushes(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, map[string]any{"pushes": pushes})
}
