package httpapi

import (
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
)

// changes is the handler of the list of what a run has changed.
func (a *API) changes(of find) echo.HandlerFunc {
	return func(c echo.Context) error {
		run, err := of(c)
		if err != nil {
			return err
		}
		content, err := a.svc.Changes(c.Request().Context(), run)
		if err != nil {
			return err
		}
		return sendStored(c, content, echo.MIMEApplicationJSON)
	}
}

// patch is the handler of what a run has changed, as a patch.
func (a *API) patch(of find) echo.HandlerFunc {
	return func(c echo.Context) error {
		run, err := of(c)
		if err != nil {
			return err
		}
		content, err := a.svc.Patch(c.Request().Context(), run)
		if err != nil {
			return err
		}
		describeFile(c.Response().Header(), api.File{Name: "changes.patch"})
		return sendStored(c, content, "text/x-diff")
	}
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
