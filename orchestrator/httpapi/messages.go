package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// say takes a message to a run that goes on.
func (a *API) say(c echo.Context, id string) error {
	key, err := httpwire.IdempotencyKey(c.Request())
	if err != nil {
		return err
	}
	saying, err := readSaying(c)
	if err != nil {
		return err
	}
	m, err := saying.Message()
	if err != nil {
		return err
	}
	if m, err = a.svc.SayOnce(c.Request().Context(), id, key, m, nil); err != nil {
		return err
	}
	return reply(c, http.StatusAccepted, m)
}

// readSaying reads the body of a message.
func readSaying(c echo.Context) (s api.Saying, err error) {
	err = readObject(c, api.MaxPartBytes+httpwire.SmallBody, member{"id", &s.ID}, member{"text", &s.Text},
		member{"data", &s.Data}, member{"parts", &s.Parts}, member{"metadata", &s.Metadata})
	if string(s.Metadata) == "null" {
		s.Metadata = nil
	}
	return s, err
}

// getArtifact answers with a file that a run has shown.
func (a *API) getArtifact(c echo.Context, id string) error {
	artifact, err := param(c, "artifact")
	if err != nil {
		return err
	}
	name, err := fileName(c)
	if err != nil {
		return err
	}
	content, file, err := a.svc.OpenArtifact(c.Request().Context(), id, artifact, name)
	if err != nil {
		return err
	}
	return sendFile(c, content, file)
}
