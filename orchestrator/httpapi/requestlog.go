package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// requestLog has a line for each request, and one for each failure of the server.
type requestLog struct {
	logger *slog.Logger
	routes *routes
}

// record logs each request after its answer: at info if it may have changed something, else
// at debug.
func (l requestLog) record(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		defer func() { l.access(c, time.Since(began)) }()
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}

func (l requestLog) access(c echo.Context, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("method", methodOf(c.Request())),
		slog.String("route", l.routes.nameOf(c)),
		slog.Int("status", c.Response().Status),
		slog.Int64("duration_ms", took.Milliseconds()),
		slog.Int64("bytes", c.Response().Size),
	}
	if run := runOf(c); run != "" {
		attrs = append(attrs, slog.String("run", run))
	}
	if trace := access.OriginOf(c.Request().Context()).Trace; trace != "" {
		attrs = append(attrs, slog.String("trace", trace))
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
	l.logger.LogAttrs(c.Request().Context(), level, "request", attrs...)
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

const runKey = "run"

// setRun stores the id of the request's run, for the log and for problems.
func setRun(c echo.Context, id string) { c.Set(runKey, id) }

func runOf(c echo.Context) string {
	id, _ := c.Get(runKey).(string)
	return id
}

// failure logs what the answer hides from the client. cut says that the client has a
// part of another answer.
func (l requestLog) failure(c echo.Context, p httpwire.Problem, err error, cut bool) {
	ours := p.Status >= http.StatusInternalServerError && p.Code != httpwire.CodeUnitFailed || cut
	if !ours || c.Request().Context().Err() != nil || errors.Is(err, httpwire.ErrServerEnds) {
		return
	}
	level := slog.LevelWarn
	if p.Status == http.StatusInternalServerError {
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("route", l.routes.nameOf(c)), slog.String("kind", p.Code), slog.Any("error", err)}
	if p.Run != "" {
		attrs = append(attrs, slog.String("run", p.Run))
	}
	var panicked *httpwire.PanicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.Stack)))
	}
	l.logger.LogAttrs(c.Request().Context(), level, "request failed", attrs...)
}
