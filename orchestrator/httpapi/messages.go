package httpapi

import (
	"errors"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// say takes a message to a run that goes on.
func (a *API) say(c echo.Context) error {
	id, err := runID(c)
	if err != nil {
		return err
	}
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
	f, err := readFields(c, api.MaxPartBytes+httpwire.SmallBody)
	if err != nil {
		return s, httpwire.AsKind(fault.BadRequest, err)
	}
	err = errors.Join(f.Only("id", "text", "data", "parts", "metadata"), httpwire.Take(f, "id", &s.ID),
		httpwire.Take(f, "text", &s.Text), httpwire.Take(f, "parts", &s.Parts))
	s.Data = f["data"]
	if metadata := f["metadata"]; string(metadata) != "null" {
		s.Metadata = metadata
	}
	return s, err
}

func (a *API) listMessages(c echo.Context) error {
	id, after, limit, err := toldOf(c)
	if err != nil {
		return err
	}
	page, err := a.svc.Messages(c.Request().Context(), id, after, limit)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, page)
}

func (a *API) listArtifacts(c echo.Context) error {
	id, after, limit, err := toldOf(c)
	if err != nil {
		return err
	}
	page, err := a.svc.Artifacts(c.Request().Context(), id, after, limit)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, page)
}

// toldOf reads which part of a list of what was told is asked for.
func toldOf(c echo.Context) (id string, after int64, limit int, err error) {
	if id, err = runID(c); err != nil {
		return "", 0, 0, err
	}
	q := queryOf(c, "after", "limit")
	after = q.integer("after", 0, math.MaxInt64, "the number of what was told before")
	limit = int(q.integer("limit", 1, maxPage, "a number from 1 to 1000"))
	return id, after, limit, q.err
}

// getArtifact answers with a file that a run has shown.
func (a *API) getArtifact(c echo.Context) error {
	id, err := runID(c)
	if err != nil {
		return err
	}
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
