package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
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

func (a *API) getUnit(c echo.Context, name string) error {
	idle, err := untilIdle(c)
	if err != nil {
		return err
	}
	if !idle {
		unit, err := a.svc.Unit(c.Request().Context(), name)
		return replied(c, unit, err)
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), idleWait)
	defer cancel()
	unit, err := a.svc.IdleUnit(ctx, name)
	return replied(c, unit, err)
}

// idleWait is how long one request waits for a unit to be idle.
const idleWait = 5 * time.Minute

// untilIdle reads ?wait=idle.
func untilIdle(c echo.Context) (bool, error) {
	q := queryOf(c, "wait")
	idle := parse(q, "wait", "the word idle", func(text string) (bool, bool) { return true, text == "idle" })
	return idle, q.err
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
	unit, created, err := a.svc.PutUnit(c.Request().Context(), name, streamed(c, archive))
	return stored(c, "/v1/units/"+name, unit, created, archive.Or(err))
}

func checkArchiveType(c echo.Context) error {
	switch httpwire.MediaType(c.Request().Header) {
	case "application/x-tar", "application/gzip", echo.MIMEOctetStream:
		return nil
	}
	return fault.New(fault.BadRequest, "the body's Content-Type is not that of an archive").
		WithHint("send a tar (application/x-tar) or a tar.gz (application/gzip)")
}
