package httpapi

import (
	"context"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"
)

// find returns the id or the name in a request's path, or a NotFound fault.
type find func(echo.Context) (string, error)

// about is the handler of what is about one thing: it hands on which.
func about(name find, handle func(c echo.Context, name string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := name(c)
		if err != nil {
			return err
		}
		return handle(c, id)
	}
}

// one is about that answers with what get returns of the thing.
func one[T any](name find, get func(ctx context.Context, name string) (T, error)) echo.HandlerFunc {
	return about(name, func(c echo.Context, id string) error {
		v, err := get(c.Request().Context(), id)
		return replied(c, v, err)
	})
}

// under has what get returns stand under a key.
func under[T any](
	key string, get func(context.Context, string) (T, error),
) func(context.Context, string) (map[string]T, error) {
	return func(ctx context.Context, name string) (map[string]T, error) {
		v, err := get(ctx, name)
		return map[string]T{key: v}, err
	}
}

// verbatim is the handler of a unit's JSON that is sent as it stands.
func verbatim[T ~[]byte](get func(ctx context.Context, unit string) (T, error)) echo.HandlerFunc {
	return about(knownName, func(c echo.Context, name string) error {
		raw, err := get(c.Request().Context(), name)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, raw)
	})
}

// What the parameter after of a list is.
const (
	ofPage = "the `next` of a page"
	ofTold = "the number of what was told before"
)

// pages is the handler of a list of one thing's, which is read page by page.
func pages[T any](
	name find, after string, get func(ctx context.Context, name string, after int64, limit int) (T, error),
) echo.HandlerFunc {
	return about(name, func(c echo.Context, id string) error {
		q := queryOf(c, "after", "limit")
		from, limit := q.integer("after", 0, math.MaxInt64, after), q.limit()
		if q.err != nil {
			return q.err
		}
		page, err := get(c.Request().Context(), id, from, limit)
		return replied(c, page, err)
	})
}
