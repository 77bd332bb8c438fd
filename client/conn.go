package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	// maxAnswer bounds the JSON of one answer in bytes: a record with its output and
	// the names of its files is far below it.
	maxAnswer = 64 << 20
	// answerTime bounds a request that needs no upload and no build.
	answerTime = time.Minute
)

// conn speaks to a server: it sends requests with the token, again where that is safe, and bounds the
// answers.
type conn struct {
	base  *url.URL
	token func() (string, error)
	team  string
	http  *http.Client
	pause func(context.Context, time.Duration) error // pause.For, replaced in tests

	patience time.Duration // how long a server may be away; 0: by the number of tries
	away     func(error)   // see Client.Patient
}

// got sends a request by call and returns the answer.
func got[T any](ctx context.Context, c *conn, r request) (answer T, err error) {
	_, err = c.call(ctx, r, &answer)
	return answer, err
}

// call sends a request, again if that is safe, and decodes the answer into the given value;
// nil ignores the answer. It returns the answer's status.
func (c *conn) call(ctx context.Context, r request, into any) (status int, err error) {
	if !r.slow {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, answerTime+c.patience, errSilent)
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

func (c *conn) callOnce(ctx context.Context, r request, into any) (status int, err error) {
	response, err := c.ask(ctx, r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, c.decode(ctx, response.Body, into)
}

// ask sends a request once; the caller closes the body of its answer. The error is a
// fault, or the context's.
func (c *conn) ask(ctx context.Context, r request) (*http.Response, error) {
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

func (c *conn) send(ctx context.Context, r request, token string) (*http.Response, error) {
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

func (c *conn) newRequest(ctx context.Context, r request, token string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.url(r), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		if c.team != "" {
			req.Header.Set("Aod-Team", c.team)
		}
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

func (c *conn) url(r request) string {
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
func (c *conn) decode(ctx context.Context, body io.Reader, into any) error {
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

// record sends a request whose answer is a run's record.
func (c *conn) record(ctx context.Context, r request) (api.Record, error) {
	record, err := got[api.Record](ctx, c, r)
	if err != nil {
		return api.Record{}, err
	}
	if err := checkID(record.ID); err != nil {
		return api.Record{}, c.strange(err)
	}
	return record, nil
}

// strange is the fault for an answer that no AOD server sends.
func (c *conn) strange(err error) error {
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
func (c *conn) lost(ctx context.Context, err error) error {
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
	if untrusted := c.untrusted(err); untrusted != nil {
		return untrusted
	}
	return fault.Wrap(fault.Unavailable, &lostError{err}, "the server at %s does not answer", c.base).
		WithHint("is aod serve running at %s?", c.base)
}

// untrusted is the fault of a server that isn't spoken to as it is named, which no retry mends; nil: it isn't that.
func (c *conn) untrusted(err error) error {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return fault.Wrap(fault.Forbidden, err, "the certificate of %s isn't trusted: %s", c.base, certificate.Err).
			WithHint("name the certificate that signs it with --ca FILE or AOD_CA, or what aod serve prints of its " +
				"own one with --pin or AOD_PIN")
	case errors.Is(err, http.ErrSchemeMismatch):
		return fault.Wrap(fault.Unavailable, err, "the server at %s speaks no TLS", c.base).
			WithHint("is it http://%s? Tokens aren't safe on such a way, but on this machine", c.base.Host)
	}
	return nil
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
	// callTries bounds the tries of a call: less than a second, since a person waits for
	// the answer.
	callTries = 4
	// startTries bounds the tries of a call where nobody listens: about 6 seconds, since a
	// server that was started beside it may take them on a busy machine.
	startTries = 7
	// streamTries bounds the tries of a stream that was connected before: about 40 seconds,
	// enough for a restart of the server.
	streamTries = 13
	// awayTries is the number of tries in a row after which a server is said to be away: one connection is lost easily.
	awayTries = 2
	// steadyTime is how long a connection has to last to count as a good one.
	steadyTime = 10 * time.Second
)

// retrier counts consecutive failed tries, and waits between them.
type retrier struct {
	pause  func(context.Context, time.Duration) error
	pauses backoff.ExponentialBackOff
	tries  int
	most   int

	waited, patience time.Duration // patience 0: tries are counted
	away             func(error)
}

func (c *conn) newRetrier() *retrier {
	pauses := backoff.ExponentialBackOff{InitialInterval: firstPause, Multiplier: 2, MaxInterval: maxPause}
	pauses.Reset()
	return &retrier{pause: c.pause, pauses: pauses, most: callTries, patience: c.patience, away: c.away}
}

// renew resets the count after a success.
func (r *retrier) renew() {
	r.tries, r.most, r.waited = 0, streamTries, 0
	r.pauses.Reset()
}

// wait returns nil when it is time for the next try, or the given error if no try is left.
func (r *retrier) wait(ctx context.Context, err error) error {
	r.tries++
	next := r.pauses.NextBackOff()
	if r.patience == 0 && r.tries >= r.most || r.patience > 0 && r.waited >= r.patience {
		return err
	}
	r.waited += next
	if r.away != nil && r.tries == awayTries {
		r.away(err)
	}
	if over := r.pause(ctx, next); errors.Is(over, errSilent) {
		return err // it says more than the context's
	} else if over != nil {
		return over
	}
	return nil
}

// refusal turns an error response into the fault that the server made.
func (c *conn) refusal(response *http.Response) error {
	if response.StatusCode/100 == 3 {
		return c.redirected(response)
	}
	told, ok := httpwire.ReadProblem(response)
	if !ok {
		return c.mute(response)
	}
	refused := told.Fault()
	if refused.Kind == fault.Unauthorized {
		refused = refused.WithHint("name the file that holds this server's token with --token-file or " +
			"AOD_TOKEN_FILE; " +
			"`aod serve` keeps it in the file server/token of its data directory")
	}
	if checkID(told.Run) == nil {
		refused.Err = &runError{told.Run}
	}
	return refused
}

// mute is the fault for an error response without a problem document, as proxies send them.
func (c *conn) mute(response *http.Response) error {
	f := fault.New(fault.Unavailable, "%s answers %d without a reason", c.base, response.StatusCode).
		WithHint("is it a server of AOD, or a proxy before one?")
	if response.StatusCode == http.StatusBadRequest && c.base.Scheme == "http" { // net/http, where it speaks TLS
		return f.WithHint("does it speak TLS? Then its address begins with https://")
	}
	if response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusGatewayTimeout {
		f.Err = &lostError{errors.New("a proxy has lost its server")}
	}
	return f
}

// redirected refuses a redirect: the token is for this server alone.
func (c *conn) redirected(response *http.Response) error {
	f := fault.New(fault.Unsupported, "%s sends us elsewhere, which is not followed", c.base)
	if target, err := url.Parse(response.Header.Get("Location")); err == nil && target.Host != "" {
		return f.WithHint("if you trust %s://%s, name that server itself", target.Scheme, target.Host)
	}
	return f.WithHint("name the server by the address that it answers at")
}

// runError is a fault with the id of its run.
type runError struct{ id string }

func (e *runError) Error() string { return "run " + e.id }

// RunOf returns the id of the run that a server's refusal is about, or "" if it names none.
func RunOf(err error) string {
	var about *runError
	if errors.As(err, &about) {
		return about.id
	}
	return ""
}

// openStream opens a stream that ends with ctx, or when nothing has come for the time of
// silence; 0 waits for ever.
func (c *conn) openStream(ctx context.Context, r request, silence time.Duration) (*stream, error) {
	ctx, end := context.WithCancelCause(ctx)
	s := &stream{stop: func() { end(nil) }, most: silence}
	if silence > 0 {
		s.quiet = time.AfterFunc(silence, func() { end(errSilent) })
	}
	response, err := c.ask(ctx, r) //nolint:bodyclose // closed by stream.close
	if err != nil {
		s.stopQuiet()
		s.stop()
		return nil, err
	}
	s.body = response.Body
	return s, nil
}

// streamFault distinguishes an unreadable stream from a lost connection.
func (c *conn) streamFault(ctx context.Context, err error) error {
	if errors.Is(err, bufio.ErrTooLong) || fault.Is(err, fault.TooLarge) {
		return c.strange(errNotEvents)
	}
	return c.lost(ctx, err)
}
