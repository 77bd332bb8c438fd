package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
)

// unitHandlers answer what is asked of units.
type unitHandlers struct {
	svc    *orchestrator.Service
	bodies bodies
}

func (h unitHandlers) list(ctx context.Context, _ string) ([]api.Unit, error) {
	return h.svc.Units.List(ctx)
}

func (h unitHandlers) get(c echo.Context, name string) error {
	idle, err := untilIdle(c)
	if err != nil {
		return err
	}
	if !idle {
		unit, err := h.svc.Units.Show(c.Request().Context(), name)
		return replied(c, unit, err)
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), idleWait)
	defer cancel()
	unit, err := h.svc.Units.Idle(ctx, name)
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
		return "", fault.New(fault.NotFound, "there is no unit of this name").WithHint("`aod units` lists the units")
	}
	return name, nil
}

// put stores a capsule from an archive of its directory.
func (h unitHandlers) put(c echo.Context) error {
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
	onlyNew, err := httpwire.OnlyNew(c.Request())
	if err != nil {
		return err
	}
	if err := h.bodies.room(c); err != nil {
		return err
	}
	archive := bodyOf(c, h.bodies.upload)
	put := h.svc.Units.Put
	if onlyNew {
		put = h.svc.Units.Add
	}
	unit, created, err := put(c.Request().Context(), name, streamed(c, archive))
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

func (h unitHandlers) remove(c echo.Context, name string) error {
	q := queryOf(c, "force")
	force := q.flag("force")
	if q.err != nil {
		return q.err
	}
	if err := h.svc.Units.Remove(c.Request().Context(), name, force); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (h unitHandlers) rollback(c echo.Context, name string) error {
	var version string
	if err := readObject(c, httpwire.SmallBody, member{"version", &version}); err != nil {
		return err
	}
	unit, err := h.svc.Units.Rollback(c.Request().Context(), name, version)
	return replied(c, unit, err)
}

// flow answers with a flow as it was written.
func (h unitHandlers) flow(c echo.Context, name string) error {
	q := queryOf(c, "version")
	version := q.text("version")
	if q.err != nil {
		return q.err
	}
	shown, _, err := h.svc.Units.Flow(c.Request().Context(), name, version)
	return replied(c, shown, err)
}

// verbatim is the handler of a unit's JSON that is sent as it stands.
func verbatim[T ~[]byte](get func(ctx context.Context, unit string) (T, error)) echo.HandlerFunc {
	return about(knownName, func(c echo.Context, name string) error {
		raw, err := get(c.Request().Context(), name)
		if err != nil {
			return err
		}
		return sendJSON(c, http.StatusOK, httpwire.TypeJSON, raw)
	})
}
