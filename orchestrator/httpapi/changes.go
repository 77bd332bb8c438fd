package httpapi

import (
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
)

func (a *API) getChanges(c echo.Context) error {
	id, err := runID(c)
	if err != nil {
		return err
	}
	return a.sendChanges(c, id)
}

func (a *API) sendChanges(c echo.Context, run string) error {
	content, err := a.svc.Changes(c.Request().Context(), run)
	if err != nil {
		return err
	}
	return sendStored(c, content, echo.MIMEApplicationJSON)
}

func (a *API) getPatch(c echo.Context) error {
	id, err := runID(c)
	if err != nil {
		return err
	}
	return a.sendPatch(c, id)
}

func (a *API) sendPatch(c echo.Context, run string) error {
	content, err := a.svc.Patch(c.Request().Context(), run)
	if err != nil {
		return err
	}
	describeFile(c.Response().Header(), api.File{Name: "changes.patch"})
	return sendStored(c, content, "text/x-diff")
}

// sendStored answers with a stored file and closes it.
func sendStored(c echo.Context, content *os.File, mediaType string) error {
	defer content.Close()
	c.Response().Header().Set(echo.HeaderContentType, mediaType)
	out := &rangeWriter{ResponseWriter: c.Response()}
	http.ServeContent(out, c.Request(), "", time.Time{}, content)
	if out.refused {
		c.Response().Header().Del(echo.HeaderContentDisposition)
		return errRange
	}
	return nil
}
