package httpapi

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// answer turns an error into an answer. It is the only place that does.
func (a *API) answer(err error, c echo.Context) {
	p := problemOf(err)
	p.Run = runOf(c)
	a.logFailure(c, p, err, c.Response().Committed)
	if c.Response().Committed {
		panic(http.ErrAbortHandler) // so that a partial answer doesn't look complete
	}
	header := c.Response().Header()
	if p.MayRetry() {
		header.Set(echo.HeaderRetryAfter, httpwire.RetryAfter)
	}
	contentType, body := a.shaped(c, p)
	if err := writeJSON(c, p.Status, contentType, body); err != nil {
		a.opts.Logger.DebugContext(c.Request().Context(), "answer not written", "error", err)
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

// logFailure logs what the answer hides from the client. cut says that the client has a
// part of another answer.
func (a *API) logFailure(c echo.Context, p httpwire.Problem, err error, cut bool) {
	ours := p.Status >= http.StatusInternalServerError && p.Code != httpwire.CodeUnitFailed || cut
	if !ours || c.Request().Context().Err() != nil || errors.Is(err, httpwire.ErrServerEnds) {
		return
	}
	level := slog.LevelWarn
	if p.Status == http.StatusInternalServerError {
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("route", a.routeOf(c)), slog.String("kind", p.Code), slog.Any("error", err)}
	if p.Run != "" {
		attrs = append(attrs, slog.String("run", p.Run))
	}
	var panicked *httpwire.PanicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.Stack)))
	}
	a.opts.Logger.LogAttrs(c.Request().Context(), level, "request failed", attrs...)
}

// recovered turns a panic into an error.
func (a *API) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		return httpwire.Catch(func() error { return next(c) })
	}
}
