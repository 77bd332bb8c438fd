package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

func (a *API) listUnits(c echo.Context) error {
	units, err := a.svc.Units(c.Request().Context())
	if err != nil {
		return err
	}
	if units == nil {
		units = []api.Unit{}
	}
	return reply(c, http.StatusOK, map[string]any{"units": units})
}

func (a *API) getUnit(c echo.Context) error {
	name, err := knownName(c)
	if err != nil {
		return err
	}
	idle, err := untilIdle(c)
	if err != nil {
		return err
	}
	if !idle {
		return a.answerUnit(c, name, a.svc.Unit)
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), idleWait)
	defer cancel()
	unit, err := a.svc.IdleUnit(ctx, name)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, unit)
}

// idleWait is how long one request waits for a unit to be idle.
const idleWait = 5 * time.Minute

// untilIdle reads ?wait=idle.
func untilIdle(c echo.Context) (bool, error) {
	q := queryOf(c, "wait")
	idle := parse(q, "wait", "the word idle", func(text string) (bool, bool) { return true, text == "idle" })
	return idle, q.err
}

func (a *API) disableUnit(c echo.Context) error {
	name, err := knownName(c)
	if err != nil {
		return err
	}
	return a.answerUnit(c, name, a.svc.DisableUnit)
}

func (a *API) enableUnit(c echo.Context) error {
	name, err := knownName(c)
	if err != nil {
		return err
	}
	return a.answerUnit(c, name, a.svc.EnableUnit)
}

// answerUnit answers with the unit that a method of the service returns.
func (a *API) answerUnit(c echo.Context, name string, get func(context.Context, string) (api.Unit, error)) error {
	unit, err := get(c.Request().Context(), name)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, unit)
}

func (a *API) getSchema(c echo.Context) error {
	name, err := knownName(c)
	if err != nil {
		return err
	}
	schema, err := a.svc.Schema(c.Request().Context(), name)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, schema)
}

// knownName returns the unit's name in the path, if it is a valid name.
func knownName(c echo.Context) (string, error) {
	name, err := param(c, "name")
	if err != nil {
		return "", err
	}
	if api.CheckUnitName(name) != nil {
		return "", fault.New(fault.NotFound, "there is no unit of this name").WithHint("GET /v1/units lists the units")
	}
	return name, nil
}

// putUnit stores a capsule from an archive of its directory.
func (a *API) putUnit(c echo.Context) error {
	name, err := param(c, "name")
	if err != nil {
		return err
	}
	if err := api.CheckUnitName(name); err != nil {
		return err
	}
	if err := checkArchiveType(c); err != nil {
		return err
	}
	if err := a.svc.Room(c.Request().ContentLength); err != nil {
		return err
	}
	archive := bodyOf(c, a.opts.UploadBytes)
	unit, created, err := a.svc.PutUnit(c.Request().Context(), name, archive)
	if err := archive.Or(err); err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/v1/units/"+name)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return reply(c, status, unit)
}

func checkArchiveType(c echo.Context) error {
	switch httpwire.MediaType(c.Request().Header) {
	case "application/x-tar", "application/gzip", echo.MIMEOctetStream:
		return nil
	}
	return fault.New(fault.BadRequest, "the body's Content-Type is not that of an archive").
		WithHint("send a tar (application/x-tar) or a tar.gz (application/gzip)")
}
