package httpapi

import (
	"context"
	"errors"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/turns"
)

// sessionID returns the id in the request's path. It has the form of a run's.
func sessionID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !httpwire.IsRunID(id) {
		return "", fault.New(fault.NotFound, "there is no session of this id").
			WithHint("`aod agent sessions` lists the sessions")
	}
	return id, nil
}

// sessionHandlers answer what is asked of sessions.
type sessionHandlers struct {
	svc     *orchestrator.Service
	bodies  bodies
	waits   waiter
	streams streamHandlers
}

func (h sessionHandlers) create(c echo.Context) error {
	unit, files, err := h.newSession(c)
	if err != nil {
		return err
	}
	session, err := h.svc.Sessions.Create(c.Request().Context(), unit, files) // which owns the files from here
	return stored(c, "/v1/sessions/"+session.ID, session, true, err)
}

// newSession reads the body in either of its forms: JSON, or a form with the project that the
// session works on.
func (h sessionHandlers) newSession(c echo.Context) (unit string, files *spool.Spool, err error) {
	if httpwire.MediaType(c.Request().Header) == echo.MIMEMultipartForm {
		f := &form{works: true, takes: map[string]int64{"unit": maxTextBytes}}
		if err := h.bodies.parseForm(c, f); err != nil {
			return "", nil, err
		}
		if err := f.noFiles(); err != nil {
			h.bodies.release(c, f.spool)
			return "", nil, err
		}
		return string(f.texts["unit"]), f.spool, nil
	}
	err = readObject(c, httpwire.SmallBody, member{"unit", &unit})
	return unit, nil, err
}

// lastChange finds the run whose changes are those of a session so far, and tells the client where else they are.
func (h sessionHandlers) lastChange(what string) find {
	return func(c echo.Context) (run string, err error) {
		id, err := sessionID(c)
		if err != nil {
			return "", err
		}
		run, err = h.svc.Sessions.LastChange(c.Request().Context(), id)
		if err == nil {
			at := url.URL{Path: "/v1/runs/" + run + "/" + what, RawQuery: c.Request().URL.RawQuery}
			c.Response().Header().Set("Content-Location", at.String())
		}
		return run, err
	}
}

func (h sessionHandlers) list(c echo.Context) error {
	q := paged(c, "unit", "open")
	filter := turns.Filter{Unit: q.text("unit"), Open: q.flag("open"), After: q.after(), Limit: q.limit()}
	if q.err != nil {
		return q.err
	}
	filter.Unit = h.svc.Units.FullName(c.Request().Context(), filter.Unit)
	page, err := h.svc.Sessions.List(c.Request().Context(), filter)
	return replied(c, page, err)
}

func (h sessionHandlers) end(ctx context.Context, id string) (api.Session, error) {
	return h.svc.Sessions.Close(ctx, id, "somebody ended it")
}

// send accepts the next turn of a session. Its answer is the run, or with stream=true
// the run's events to their end.
func (h sessionHandlers) send(c echo.Context, id string) error {
	q := queryOf(c, "wait", "stream")
	streams := q.flag("stream")
	how := ask{wait: q.wait()}
	key, err := httpwire.IdempotencyKey(c.Request())
	if q.err != nil || err != nil {
		return errors.Join(q.err, err)
	}
	how.key = key
	sub, err := h.bodies.submission(c, id)
	if err != nil {
		return err
	}
	sub.Session, sub.Key, sub.TraceParent = id, how.key, httpwire.TraceParent(c.Request())
	// Submit owns the files from here, even if it fails
	record, replayed, err := h.svc.Submit(c.Request().Context(), sub)
	if err != nil {
		return err
	}
	if !streams {
		return h.waits.accepted(c, how, record, replayed)
	}
	announce(c, record, replayed)
	return h.streams.follow(c, record.ID, 0, nil)
}
