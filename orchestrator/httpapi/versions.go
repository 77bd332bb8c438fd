package httpapi

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

func (a *API) removeUnit(c echo.Context) error {
	name, err := knownName(c)
	if err != nil {
		return err
	}
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

func (a *API) listVersions(c echo.Context) error {
	name, err := knownName(c)
	if err != nil {
		return err
	}
	versions, err := a.svc.UnitVersions(c.Request().Context(), name)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, map[string]any{"versions": versions})
}

func (a *API) rollbackUnit(c echo.Context) error {
	name, err := knownName(c)
	if err != nil {
		return err
	}
	f, err := readFields(c, httpwire.SmallBody)
	if err != nil {
		return httpwire.AsKind(fault.BadRequest, err)
	}
	var version string
	if err := errors.Join(f.Only("version"), httpwire.Take(f, "version", &version)); err != nil {
		return err
	}
	unit, err := a.svc.RollbackUnit(c.Request().Context(), name, version)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, unit)
}
