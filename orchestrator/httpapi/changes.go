package httpapi

import (
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
)

// changes answers with the list of what a run has changed.
func (a *API) changes(c echo.Context, run string) error {
	content, err := a.svc.Changes(c.Request().Context(), run)
	if err != nil {
		return err
	}
	return sendStored(c, content, echo.MIMEApplicationJSON)
}

// patch answers with what a run has changed, as a patch.
func (a *API) patch(c echo.Context, run string) error {
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
