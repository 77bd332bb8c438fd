package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/internal/access"
)

// requestTime bounds requests that neither wait nor carry much data.
const requestTime = 30 * time.Second

// bounded gives every request a time limit, unless its route is slow.
func (a *API) bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r, _ := a.route(c); r.traits&(slow|stream) != 0 {
			return next(c)
		}
		request := c.Request()
		defer c.SetRequest(request) // the outer handlers must not take this end for the client's
		ctx, cancel := context.WithTimeout(request.Context(), requestTime)
		defer cancel()
		c.SetRequest(request.WithContext(ctx))
		return next(c)
	}
}

// record logs each request after its answer: at info if it may have changed something, else
// at debug.
func (a *API) record(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		defer func() { a.logAccess(c, time.Since(began)) }()
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}

func (a *API) logAccess(c echo.Context, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("method", methodOf(c.Request())),
		slog.String("route", a.routeOf(c)),
		slog.Int("status", c.Response().Status),
		slog.Int64("duration_ms", took.Milliseconds()),
		slog.Int64("bytes", c.Response().Size),
	}
	if run := runOf(c); run != "" {
		attrs = append(attrs, slog.String("run", run))
	}
	if token := access.ClientOf(c.Request().Context()); token != "" {
		attrs = append(attrs, slog.String("token", token))
	}
	if noted, ok := c.Get(notesKey).([]slog.Attr); ok {
		attrs = append(attrs, noted...)
	}
	level := slog.LevelInfo
	if isReading(c.Request()) {
		level = slog.LevelDebug
	}
	a.opts.Logger.LogAttrs(c.Request().Context(), level, "request", attrs...)
}

func isReading(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
	http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// methodOf is the method if it is a known one: a client can send any word.
func methodOf(r *http.Request) string {
	if slices.Contains(methods, r.Method) {
		return r.Method
	}
	return "(other)"
}

// routeOf is the pattern. The log never shows the path, which the client wrote.
func (a *API) routeOf(c echo.Context) string {
	if _, ok := a.route(c); ok {
		return c.Path()
	}
	return "(none)"
}

const runKey = "run"

// setRun stores the id of the request's run, for the log and for problems.
func setRun(c echo.Context, id string) { c.Set(runKey, id) }

func runOf(c echo.Context) string {
	id, _ := c.Get(runKey).(string)
	return id
}
