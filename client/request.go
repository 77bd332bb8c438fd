package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

const (
	// maxAnswer bounds the JSON of one answer in bytes: a record with its output and
	// the names of its files is far below it.
	maxAnswer = 64 << 20
	// answerTime bounds a request that needs no upload and no build.
	answerTime = time.Minute
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

// unhurried is the request without the bound of answerTime.
func (r request) unhurried() request {
	r.slow = true
	return r
}

// with is the request with a JSON body.
func (r request) with(document any) request {
	raw, err := json.Marshal(document)
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

// got sends a request by call and returns the answer.
func got[T any](ctx context.Context, c *Client, r request) (answer T, err error) {
	_, err = c.call(ctx, r, &answer)
	return answer, err
}

// pages yields what is in the pages of a list, which it requests as they are wanted. A page says
// where the next one begins, which goes into the parameter key; nil: it is the last one. After an
// error there is no more.
func pages[P, T any, K comparable](
	ctx context.Context, c *Client, r request, key string, of func(P) ([]T, *K),
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
	ctx context.Context, c *Client, r request, most int, of func(P) ([]T, *int64),
) iter.Seq2[T, error] {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set("limit", strconv.Itoa(most))
	return pages(ctx, c, r, "after", of)
}

// call sends a request, again if that is safe, and decodes the answer into the given value;
// nil ignores the answer. It returns the answer's status.
func (c *Client) call(ctx context.Context, r request, into any) (status int, err error) {
	if !r.slow {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, answerTime, errSilent)
		defer done()
	}
	retries := c.newRetrier()
	for {
		status, err = c.callOnce(ctx, r, into)
		nobody := errors.Is(err, syscall.ECONNREFUSED) // so nothing of the body was read
		if err == nil || !isLost(err) || r.once && !nobody {
			return status, err
		}
		if nobody {
			retries.most = startTries
		}
		if err := retries.wait(ctx, err); err != nil {
			return status, err
		}
	}
}

func (c *Client) callOnce(ctx context.Context, r request, into any) (status int, err error) {
	response, err := c.ask(ctx, r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, c.decode(ctx, response.Body, into)
}

// ask sends a request once; the caller closes the body of its answer. The error is a
// fault, or the context's.
func (c *Client) ask(ctx context.Context, r request) (*http.Response, error) {
	if r.err != nil {
		return nil, r.err
	}
	token, err := checkedToken(c.token)
	if err != nil {
		return nil, err
	}
	response, err := c.send(ctx, r, token)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusUnauthorized && !r.once {
		if now, err := checkedToken(c.token); err == nil && now != token {
			_ = response.Body.Close() // a refusal that is not read
			if response, err = c.send(ctx, r, now); err != nil {
				return nil, err
			}
		}
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		return nil, c.refusal(response)
	}
	return response, nil
}

func (c *Client) send(ctx context.Context, r request, token string) (*http.Response, error) {
	req, err := c.newRequest(ctx, r, token)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	return response, nil
}

func (c *Client) newRequest(ctx context.Context, r request, token string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.url(r), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("User-Agent", "aod")
	if r.body != nil {
		if req.Body, req.ContentLength, err = r.body(); err != nil {
			return nil, err
		}
		if r.slow { // so that a refusal comes before the upload, not in the middle of it
			req.Header.Set("Expect", "100-continue")
		}
	}
	return req, nil
}

func (c *Client) url(r request) string {
	address := *c.base
	escaped := make([]string, len(r.path))
	for i, part := range r.path {
		escaped[i] = url.PathEscape(part)
	}
	prefix := address.EscapedPath()
	address.Path += "/" + strings.Join(r.path, "/")
	address.RawPath = prefix + "/" + strings.Join(escaped, "/")
	address.RawQuery = r.query.Encode()
	return address.String()
}

// decode reads one bounded JSON document.
func (c *Client) decode(ctx context.Context, body io.Reader, into any) error {
	raw, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return c.lost(ctx, err)
	case len(raw) > maxAnswer:
		return fault.New(fault.TooLarge, "the answer of %s is larger than %d MiB", c.base, maxAnswer>>20)
	case into == nil:
		return nil
	}
	if document, ok := into.(*json.RawMessage); ok && json.Valid(raw) {
		*document = bytes.TrimSpace(raw)
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return c.strange(err)
	}
	return nil
}

// strange is the fault for an answer that no AOD server sends.
func (c *Client) strange(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the answer of %s can't be understood", c.base).
		WithHint("is %s a server of AOD, and of this version?", c.base)
}

// lostError marks a fault that a retry may cure: no answer came, or half of one.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }

func (e *lostError) Unwrap() error { return e.err }

func isLost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost)
}

// errSilent is the cause when a silent connection is closed.
var errSilent = errors.New("it has been silent for too long")

// lost explains a broken connection. If ctx ended, except for silence, the error is its
// cause. If our own side failed, it is that fault. Else the server is away.
func (c *Client) lost(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(cause, errSilent) {
		return cause
	}
	if cause != nil {
		err = cause
	}
	var ours *fault.Error
	if errors.As(err, &ours) {
		return ours
	}
	var bare *url.Error
	if errors.As(err, &bare) {
		err = bare.Err
	}
	return fault.Wrap(fault.Unavailable, &lostError{err}, "the server at %s does not answer", c.base).
		WithHint("is aod serve running at %s?", c.base)
}
