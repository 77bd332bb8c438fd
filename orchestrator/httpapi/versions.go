package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func (a *API) removeUnit(c echo.Context, name string) error {
	q := queryOf(c, "force")
	force := q.flag("force")
	if q.err != nil {
		return q.err
	}
	if err := a.svc.RemoveUnit(c.Request().Context(), name, force); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (a *API) rollbackUnit(c echo.Context, name string) error {
	var version string
	if err := readObject(c, httpwire.SmallBody, member{"version", &version}); err != nil {
		return err
	}
	unit, err := a.svc.RollbackUnit(c.Request().Context(), name, version)
	return replied(c, unit, err)
}
