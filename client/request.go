package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/url"
	"strconv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// request is one request to the server.
type request struct {
	method string
	path   []string // its segments, unescaped
	query  url.Values
	header map[string]string
	// body opens the body anew for every try, with its length, or -1 if that isn't known;
	// nil is no body.
	body func() (io.ReadCloser, int64, error)
	once bool  // it must not be repeated once it has come to the server
	slow bool  // answerTime doesn't bound it
	err  error // why it can't be made; it isn't sent then
}

// to is a request to an address of the API.
func to(method string, path ...string) request {
	return request{method: method, path: append([]string{"v1"}, path...), header: map[string]string{}}
}

// toRun is a request about a run.
func toRun(method, id string, more ...string) request {
	r := to(method, append([]string{"runs", id}, more...)...)
	r.err = checkID(id)
	return r
}

// toUnit is a request about a unit.
func toUnit(method, name string, more ...string) request {
	r := to(method, append([]string{"units", name}, more...)...)
	r.err = api.CheckUnitName(name)
	return r
}

// toSchedule is a request about a schedule.
func toSchedule(method, name string, more ...string) request {
	r := to(method, append([]string{"schedules", name}, more...)...)
	r.err = api.CheckScheduleName(name)
	return r
}

// toWebhook is a request about a webhook.
func toWebhook(method, id string, more ...string) request {
	r := to(method, append([]string{"webhooks", id}, more...)...)
	if checkID(id) != nil {
		r.err = fault.New(fault.Input, "%s is not the id of a webhook", fault.Quote(id)).
			WithHint("`aod webhook ls` lists them")
	}
	return r
}

// toSession is a request about a session.
func toSession(method, id string, more ...string) request {
	r := to(method, append([]string{"sessions", id}, more...)...)
	r.err = checkID(id)
	return r
}

// unhurried is the request without the bound of answerTime.
func (r request) unhurried() request {
	r.slow = true
	return r
}

// with is the request with a JSON body.
func (r request) with(document any) request {
	raw, err := strictjson.Encode(document)
	if err != nil && r.err == nil {
		r.err = fault.Wrap(fault.Input, err, "the request can't be written as JSON")
	}
	r.header["Content-Type"] = "application/json"
	r.body = func() (io.ReadCloser, int64, error) { return io.NopCloser(bytes.NewReader(raw)), int64(len(raw)), nil }
	return r
}

// withForm is the request with a form; see formOf.
func (r request) withForm(texts []field, files []InputFile, project func(io.Writer) error) request {
	open, contentType, err := formOf(texts, files, project)
	if r.err == nil {
		r.err = err
	}
	r.header["Content-Type"], r.body, r.slow = contentType, open, true
	return r
}

// idRule is the form of an id in a path. Only the server knows which ids exist.
var idRule = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$`)

func checkID(id string) error {
	if idRule().MatchString(id) {
		return nil
	}
	return fault.New(fault.Input, "%q is not the id of a run", id).WithHint("`aod ps -a` lists the runs with their ids")
}

// pages yields what is in the pages of a list, which it requests as they are wanted. A page says
// where the next one begins, which goes into the parameter key; nil: it is the last one. After an
// error there is no more.
func pages[P, T any, K comparable](
	ctx context.Context, c *conn, r request, key string, of func(P) ([]T, *K),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		var at K
		r := r // each reading begins anew
		r.query = maps.Clone(r.query)
		for page, err := got[P](ctx, c, r); ; page, err = got[P](ctx, c, r) {
			if err != nil {
				yield(none, err)
				return
			}
			all, next := of(page)
			for _, one := range all {
				if !yield(one, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if *next == at || len(all) == 0 {
				yield(none, c.strange(errNoProgress))
				return
			}
			at = *next
			r.query.Set(key, fmt.Sprint(at))
		}
	}
}

// numbered is pages for a list whose pages begin after a number.
func numbered[P, T any](
	ctx context.Context, c *conn, r request, most int, of func(P) ([]T, *int64),
) iter.Seq2[T, error] {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set("limit", strconv.Itoa(most))
	return pages(ctx, c, r, "after", of)
}
