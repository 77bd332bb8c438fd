package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// answerer answers requests that fail.
type answerer struct {
	log    requestLog
	routes *routes
}

// answer turns an error into an answer. It is the only place that does.
func (a answerer) answer(err error, c echo.Context) {
	p := problemOf(err)
	if p.Status == http.StatusNotFound && c.Request().URL.Path == "/handoff" {
		p.Hint = "this belongs to the capsule API, which a program has in its sandbox at 127.0.0.1:7070; here " +
			"POST /v1/runs starts a run"
	}
	p.Run = runOf(c)
	a.log.failure(c, p, err, c.Response().Committed)
	if c.Response().Committed {
		panic(http.ErrAbortHandler) // so that a partial answer doesn't look complete
	}
	header := c.Response().Header()
	if p.MayRetry() {
		header.Set(echo.HeaderRetryAfter, p.RetryAfter())
	}
	mount := a.routes.mountOf(c)
	if mount.Page != nil {
		mount.Page(c.Response(), c.Request(), p)
		return
	}
	contentType, body := mount.shaped(p)
	if err := writeJSON(c, p.Status, contentType, body); err != nil {
		a.log.logger.DebugContext(c.Request().Context(), "answer not written", "error", err)
	}
}

// problemOf is the part of an error that a client may know. Two answers are chosen by the
// router and by net/http.
func problemOf(err error) httpwire.Problem {
	switch {
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return httpwire.MethodNotAllowed()
	case errors.Is(err, errRange):
		return httpwire.StatusProblem(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable",
			"the file has no such range", "the header Content-Range says how long it is")
	case errors.Is(err, echo.ErrNotFound):
		err = fault.New(fault.NotFound, "there is nothing at this address").
			WithHint("GET /openapi.json lists the addresses")
	}
	return httpwire.ProblemOf(err)
}

// recovered turns a panic into an error.
func recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		return httpwire.Catch(func() error { return next(c) })
	}
}

// reply answers with a value as JSON. HTML in strings isn't escaped.
func reply(c echo.Context, status int, v any) error {
	return writeJSON(c, status, httpwire.TypeJSON, v)
}

// replied answers with what was asked for, unless there is an error.
func replied(c echo.Context, v any, err error) error {
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, v)
}

// stored answers with what is at an address now, and says so if it is new.
func stored(c echo.Context, at string, v any, created bool, err error) error {
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, at)
	if created {
		return reply(c, http.StatusCreated, v)
	}
	return reply(c, http.StatusOK, v)
}

func writeJSON(c echo.Context, status int, contentType string, v any) error {
	body, err := httpwire.Encode(v)
	if err != nil {
		return err
	}
	return sendJSON(c, status, contentType, body)
}

// leastZipped is the size from which a body is worth being compressed: a smaller one is sent at once anyhow. The
// size of an answer tells strangers nothing of a secret in it: no request that they could choose has the token.
const leastZipped = 2 << 10

func sendJSON(c echo.Context, status int, contentType string, body []byte) error {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, contentType) // Blob doesn't overwrite it
	if len(body) >= leastZipped {
		header.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
		if httpwire.TakesGzip(c.Request()) {
			body = httpwire.Gzip(header, body)
		}
	}
	if err := c.Blob(status, contentType, body); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}
