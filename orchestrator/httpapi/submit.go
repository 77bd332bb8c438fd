package httpapi

import (
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func (a *API) submit(c echo.Context) error {
	ask, err := askOf(c)
	if err != nil {
		return err
	}
	sub, err := a.submissionOf(c, "")
	if err != nil {
		return err
	}
	sub.Key, sub.TraceParent = ask.key, httpwire.TraceParent(c.Request())
	// Submit owns the files from here, even if it fails
	record, replayed, err := a.svc.Submit(c.Request().Context(), sub)
	if err != nil {
		return err
	}
	return a.accepted(c, ask, record, replayed)
}

// release releases files that no run took.
func (a *API) release(c echo.Context, files *spool.Spool) {
	if err := files.Remove(); err != nil {
		a.opts.Logger.WarnContext(c.Request().Context(), "spool not removed", "error", err)
	}
}

// submissionOf reads the body in either of its forms. With a session it may be a message.
func (a *API) submissionOf(c echo.Context, session string) (orchestrator.Submission, error) {
	switch httpwire.MediaType(c.Request().Header) {
	case echo.MIMEApplicationJSON:
		return a.readJSON(c, session)
	case echo.MIMEMultipartForm:
		return a.readForm(c, session)
	}
	return orchestrator.Submission{}, fault.New(fault.BadRequest,
		"the body's Content-Type is neither application/json nor multipart/form-data").
		WithHint("send JSON with the header Content-Type: application/json, or a form if there are files")
}

func (a *API) readJSON(c echo.Context, session string) (orchestrator.Submission, error) {
	sub := orchestrator.Submission{Session: session}
	var timeout string
	var message *string
	members := []member{
		{"input", &sub.Input},
		{"timeout", &timeout},
		{"metadata", &sub.Metadata},
		{"unattended", &sub.Unattended},
	}
	if session != "" {
		members = append([]member{{"message", &message}}, members...)
	} else {
		members = slices.Concat([]member{{"unit", &sub.Unit}, {"session", &sub.Session}}, members,
			[]member{{"context", &sub.Context}, {"env", &sub.Start.Env}, {"dir", &sub.Start.Dir}})
	}
	err := readObject(c, a.opts.PayloadBytes+httpwire.SmallBody, members...)
	if err == nil {
		sub, err = withMessage(sub, message)
	}
	if err != nil {
		return orchestrator.Submission{}, err
	}
	return completed(sub, timeout)
}

// completed checks the parts that both forms of a submission have.
func completed(sub orchestrator.Submission, timeout string) (orchestrator.Submission, error) {
	if sub.Unit == "" && sub.Session == "" {
		return sub, fault.New(fault.BadRequest, "the request names no unit").
			WithHint(`set "unit"; GET /v1/units lists them`)
	}
	var err error
	sub.Timeout, err = httpwire.Timeout(timeout)
	return sub, err
}
