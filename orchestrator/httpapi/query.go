package httpapi

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// query reads the parameters of a request's query. The first invalid one is kept in err, a
// BadRequest fault; invalid parameters read as absent.
type query struct {
	values url.Values
	err    error
}

// queryOf refuses unknown parameters: a misspelt one would select nothing.
func queryOf(c echo.Context, names ...string) *query { return queryWith(c, "", names...) }

// queryWith is queryOf with one parameter that may be repeated.
func queryWith(c echo.Context, list string, names ...string) *query {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return &query{err: fault.Wrap(fault.BadRequest, err, "the query of the address can't be read")}
	}
	for name, given := range values {
		if !slices.Contains(names, name) {
			return &query{err: fault.New(fault.BadRequest, "the address has a query parameter that is not known").
				WithHint("its parameters are %q", names)}
		}
		if len(given) > 1 && name != list {
			return &query{err: fault.New(fault.BadRequest, "the query parameter %q is given twice", name)}
		}
	}
	return &query{values: values}
}

// parse reads a parameter with read, if it is there; want describes a valid value.
func parse[T any](q *query, name, want string, read func(string) (T, bool)) T {
	var zero T
	text := q.values.Get(name)
	if text == "" || q.err != nil {
		return zero
	}
	v, ok := read(text)
	if !ok {
		q.err = fault.New(fault.BadRequest, "the query parameter %q is not valid", name).WithHint("it is %s", want)
		return zero
	}
	return v
}

// pairs reads a parameter that may be repeated, each time KEY:VALUE.
func (q *query) pairs(name string) map[string]string {
	var pairs map[string]string
	for _, text := range q.values[name] {
		key, value, found := strings.Cut(text, ":")
		if other, taken := pairs[key]; !found || taken && other != value {
			q.fail(fault.New(fault.BadRequest, "the query parameter %q is not valid", name).
				WithHint("it is KEY:VALUE, and may be repeated with other keys"))
			return nil
		}
		if pairs == nil {
			pairs = map[string]string{}
		}
		pairs[key] = value
	}
	if err := api.CheckMetadata(pairs); err != nil {
		q.fail(httpwire.AsKind(fault.BadRequest, err))
		return nil
	}
	return pairs
}

// fail keeps the first error.
func (q *query) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

const longText = 512 // bytes of a name or a cursor, at most

func (q *query) text(name string) string {
	return parse(q, name, "at most 512 bytes long", func(s string) (string, bool) { return s, len(s) <= longText })
}

func (q *query) integer(name string, from, to int64, want string) int64 {
	return parse(q, name, want, func(s string) (int64, bool) {
		n, err := strconv.ParseInt(s, 10, 64)
		return n, err == nil && n >= from && n <= to
	})
}

func (q *query) flag(name string) bool {
	return parse(q, name, "true or false",
		func(s string) (bool, bool) { return s == "true", s == "true" || s == "false" })
}

func (q *query) time(name string) time.Time {
	return parse(q, name, "a time such as 2026-01-31T12:00:00Z", func(s string) (time.Time, bool) {
		t, err := time.Parse(time.RFC3339, s)
		return t, err == nil
	})
}

func (q *query) id(name string) string {
	return parse(q, name, "the id of a run", func(s string) (string, bool) { return s, httpwire.IsRunID(s) })
}

// wait is how long the client waits for the end of the run; 0 is not at all.
func (q *query) wait() time.Duration {
	return parse(q, "wait", "a duration from 0s to 5m, such as 30s", httpwire.Wait)
}

// runID returns the id in the request's path.
func runID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !httpwire.IsRunID(id) {
		return "", fault.New(fault.NotFound, "there is no run of this id").WithHint("`aod runs` lists the runs")
	}
	setRun(c, id)
	return id, nil
}

// param returns a segment of the path, decoded. Echo matches the encoded path if a path has
// encoded slashes and the like.
func param(c echo.Context, name string) (string, error) {
	value := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return value, nil
	}
	plain, err := url.PathUnescape(value)
	if err != nil {
		return "", fault.Wrap(fault.BadRequest, err, "the address can't be read")
	}
	return plain, nil
}

// paged is queryOf of a list whose elements have numbers: it is read page by page.
func paged(c echo.Context, names ...string) *query {
	return queryOf(c, append(names, "cursor", "after", "limit")...)
}

// after is the number after which a page begins. Every list has it as its cursor, lists of numbers also as after.
func (q *query) after() int64 {
	if q.values.Has("cursor") && q.values.Has("after") {
		q.fail(fault.New(fault.BadRequest, "the query parameters cursor and after are the same: give one"))
	}
	return q.number("cursor") + q.number("after")
}

func (q *query) number(name string) int64 {
	return q.integer(name, 0, math.MaxInt64, aCursor)
}

const aCursor = "the `next` of a page"

func (q *query) limit() int {
	return int(q.integer("limit", 1, maxPage, "a number from 1 to 1000"))
}

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

// pages is the handler of a list of one thing's, which is read page by page.
func pages[T any](
	name find, get func(ctx context.Context, name string, after int64, limit int) (T, error),
) echo.HandlerFunc {
	return about(name, func(c echo.Context, id string) error {
		q := paged(c)
		from, limit := q.after(), q.limit()
		if q.err != nil {
			return q.err
		}
		page, err := get(c.Request().Context(), id, from, limit)
		return replied(c, page, err)
	})
}

// parts is the handler of a list of one thing's that get returns whole, for the key in the answer. Without a limit all
// of it is the page; a cursor is the name of the last element of the page before.
func parts[T any](
	thing find, key string, nameOf func(T) string, get func(ctx context.Context, thing string) ([]T, error),
) echo.HandlerFunc {
	return about(thing, func(c echo.Context, id string) error {
		q := queryOf(c, "cursor", "limit")
		cursor := parse(q, "cursor", aCursor, func(s string) (string, bool) { return s, len(s) <= longName })
		limit := q.limit()
		if q.err != nil {
			return q.err
		}
		all, err := get(c.Request().Context(), id)
		if err != nil {
			return err
		}
		begin := 1 + slices.IndexFunc(all, func(e T) bool { return nameOf(e) == cursor })
		if begin == 0 && cursor != "" {
			return fault.New(fault.BadRequest, "what the cursor names is no longer in the list").
				WithHint("read the list from its beginning")
		}
		var next *string
		page := append([]T{}, all[begin:]...)
		if limit > 0 && limit < len(page) {
			last := nameOf(page[limit-1])
			page, next = page[:limit], &last
		}
		return reply(c, http.StatusOK, map[string]any{key: page, "next": next})
	})
}

// whole finds what a list of the server itself is about.
func whole(echo.Context) (string, error) { return "", nil }

func nameOfFile(f api.File) string       { return f.Name }
func nameOfUnit(u api.Unit) string       { return u.Name }
func versionOf(v api.UnitVersion) string { return v.Version }
func idOfPush(p api.Push) string         { return p.ID }
