package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	goruntime "runtime"
	"runtime/debug"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/fault"
)

// problem is the body of every answer that is an error (RFC 9457,
// schemas/problem.schema.json).
type problem struct {
	Type     string          `json:"type"`
	Title    string          `json:"title"`
	Status   int             `json:"status"`
	Detail   string          `json:"detail"`
	Code     string          `json:"code"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
	Run      string          `json:"run,omitempty"`
}

const (
	problemType = "application/problem+json"
	retryAfter  = "5" // seconds, for a client that may come again
)

// answer is the one place where an error becomes an answer.
func (a *API) answer(err error, c echo.Context) {
	p := problemOf(err)
	p.Run = runOf(c)
	a.logFailure(c, p, err)
	if c.Response().Committed {
		panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
	}
	header := c.Response().Header()
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		header.Set(echo.HeaderRetryAfter, retryAfter)
	}
	contentType, body := a.shaped(c, p)
	if err := writeJSON(c, p.Status, contentType, body); err != nil {
		a.opts.Logger.DebugContext(c.Request().Context(), "answer not written", "error", err)
	}
}

// problemOf says of an error what a client may know. Two answers are chosen by the
// router and by net/http, and that of a unit that failed is no fault of anybody's here;
// every other status comes from the table of faults.
func problemOf(err error) problem {
	var failure *unitFailure
	switch {
	case errors.As(err, &failure):
		return failure.problem()
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return plainProblem(http.StatusMethodNotAllowed, "method_not_allowed", "this address does not take the method", "the header Allow lists those that it takes")
	case errors.Is(err, errRange):
		return plainProblem(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable", "the file has no such range", "the header Content-Range says how long it is")
	case errors.Is(err, echo.ErrNotFound):
		err = fault.New(fault.NotFound, "there is nothing at this address").WithHint("GET /openapi.json lists the addresses")
	}
	public := fault.Public(err)
	return problem{
		Type:     "urn:aod:fault:" + public.Kind.String(),
		Title:    public.Kind.Title(),
		Status:   fault.HTTPStatus(public),
		Detail:   public.Msg,
		Code:     public.Kind.String(),
		Hint:     public.Hint,
		Findings: public.Findings,
	}
}

func plainProblem(status int, code, detail, hint string) problem {
	return problem{Type: "urn:aod:fault:" + code, Title: http.StatusText(status), Status: status, Detail: detail, Code: code, Hint: hint}
}

// logFailure tells the operator of what a client is not told.
func (a *API) logFailure(c echo.Context, p problem, err error) {
	ours := p.Status >= http.StatusInternalServerError && p.Code != codeUnitFailed || c.Response().Committed
	if !ours || c.Request().Context().Err() != nil || errors.Is(err, errServerEnds) {
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
	var panicked *panicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.stack)))
	}
	a.opts.Logger.LogAttrs(c.Request().Context(), level, "request failed", attrs...)
}

// recovered makes an error of a panic.
func (a *API) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer caught(&err)
		return next(c)
	}
}

// caught is deferred, and makes an error of a panic. That of a handler which wants its
// connection cut goes on.
func caught(err *error) {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		*err = &panicError{what: describe(v), stack: debug.Stack()}
	}
}

// catching does something and makes an error of its panic.
func catching(do func()) (err error) {
	defer caught(&err)
	do()
	return nil
}

// panicError is a panic of a handler. Its text has nothing of the panic's value,
// which may hold a payload.
type panicError struct {
	what  string
	stack []byte
}

func (e *panicError) Error() string { return "panic: " + e.what }

func describe(v any) string {
	if err, ok := v.(goruntime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", v)
}
