package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// sessionID returns the id in the request's path. It has the form of a run's.
func sessionID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !httpwire.IsRunID(id) {
		return "", fault.New(fault.NotFound, "there is no session of this id").
			WithHint("GET /v1/sessions lists the sessions")
	}
	return id, nil
}

func (a *API) createSession(c echo.Context) error {
	unit, files, err := a.newSession(c)
	if err != nil {
		return err
	}
	session, err := a.svc.CreateSession(c.Request().Context(), unit, files) // which owns the files from here
	return stored(c, "/v1/sessions/"+session.ID, session, true, err)
}

// newSession reads the body in either of its forms: JSON, or a form with the project that the
// session works on.
func (a *API) newSession(c echo.Context) (unit string, files *spool.Spool, err error) {
	if httpwire.MediaType(c.Request().Header) == echo.MIMEMultipartForm {
		f := &form{works: true, takes: map[string]int64{"unit": maxTextBytes}}
		if err := a.parseForm(c, f); err != nil {
			return "", nil, err
		}
		if err := f.noFiles(); err != nil {
			a.release(c, f.spool)
			return "", nil, err
		}
		return string(f.texts["unit"]), f.spool, nil
	}
	err = readObject(c, httpwire.SmallBody, member{"unit", &unit})
	return unit, nil, err
}

// lastChange finds the run whose changes are those of a session so far, and tells the client where else they are.
func (a *API) lastChange(what string) find {
	return func(c echo.Context) (run string, err error) {
		id, err := sessionID(c)
		if err != nil {
			return "", err
		}
		run, err = a.svc.LastChange(c.Request().Context(), id)
		if err == nil {
			c.Response().Header().Set("Content-Location", "/v1/runs/"+run+"/"+what)
		}
		return run, err
	}
}

func (a *API) listSessions(c echo.Context) error {
	q := queryOf(c, "unit", "open", "after", "limit")
	filter := orchestrator.SessionFilter{Unit: q.text("unit"), Open: q.flag("open"), After: q.after(), Limit: q.limit()}
	if q.err != nil {
		return q.err
	}
	page, err := a.svc.SessionList(c.Request().Context(), filter)
	return replied(c, page, err)
}

func (a *API) closeSession(ctx context.Context, id string) (api.Session, error) {
	return a.svc.CloseSession(ctx, id, "somebody ended it")
}

// sendMessage accepts the next turn of a session. Its answer is the run, or with stream=true
// the run's events to their end.
func (a *API) sendMessage(c echo.Context, id string) error {
	q := queryOf(c, "wait", "stream")
	streams := q.flag("stream")
	how := ask{wait: q.wait()}
	key, err := httpwire.IdempotencyKey(c.Request())
	if q.err != nil || err != nil {
		return errors.Join(q.err, err)
	}
	how.key = key
	sub, err := a.submissionOf(c, id)
	if err != nil {
		return err
	}
	sub.Session, sub.Key, sub.TraceParent = id, how.key, httpwire.TraceParent(c.Request())
	// Submit owns the files from here, even if it fails
	record, replayed, err := a.svc.Submit(c.Request().Context(), sub)
	if err != nil {
		return err
	}
	if !streams {
		return a.accepted(c, how, record, replayed)
	}
	announce(c, record, replayed)
	return a.streamEvents(c, record.ID, 0)
}

// withMessage makes the input of a message, which a session's turn may have in its place.
func withMessage(sub orchestrator.Submission, message *string) (orchestrator.Submission, error) {
	if message == nil {
		return sub, nil
	}
	if len(sub.Input) > 0 {
		return sub, fault.New(fault.BadRequest, "the request has a message and an input").
			WithHint("send one of them: a message is the field message of the input")
	}
	raw, err := json.Marshal(map[string]string{"message": *message})
	sub.Input = raw
	return sub, err
}
