package worker

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// newClient returns a client with connections of its own.
func newClient(config *tls.Config) *http.Client {
	t := httpwire.NewTransport()
	t.TLSClientConfig, t.MaxIdleConnsPerHost = config.Clone(), 64
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// link speaks to the server. What is asked for runs, what programs ask and files have connections of their own: none
// waits for another one's window.
type link struct {
	base                   *url.URL
	credential             string
	control, relays, files *http.Client
	logger                 *slog.Logger
}

func newLink(m Membership, logger *slog.Logger) (*link, error) {
	base, err := url.Parse(m.Server)
	if err != nil {
		return nil, fault.New(fault.Input, "the address of the server can't be read: %s", fault.Quote(m.Server))
	}
	config, err := m.trust().Config()
	if err != nil {
		return nil, err
	}
	return &link{
		base: base, credential: m.Credential, control: newClient(config), relays: newClient(config),
		files: newClient(config), logger: logger,
	}, nil
}

var (
	// errVoid says that the server doesn't know a lease, or an offer, any more.
	errVoid = errors.New("the lease is void")
	// errWhole says that a file has no bytes after those that are here.
	errWhole = errors.New("the file is whole")
	// errRevoked says that the server doesn't know this worker any more.
	errRevoked = fault.New(fault.Unauthorized, "the server has removed this worker").
			WithHint("`aod worker add NAME` there invites it again; join with `aod work --join FILE`")
)

// lateError says that the server has had a wire.Hello with a greater number.
type lateError struct{ last int64 }

func (*lateError) Error() string { return "a later request for orders has come" }

// url returns the address of a path at the server, which is escaped already.
func (l *link) url(path string) string {
	return strings.TrimSuffix(l.base.String(), "/") + path
}

// request makes a request that has this worker's credential.
func (l *link) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.url(path), body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+l.credential)
	r.Header.Set("User-Agent", "aod")
	return r, nil
}

// do sends a request. An answer that isn't a good one is an error: errVoid, errRevoked, or a fault.
func (l *link) do(by *http.Client, r *http.Request) (*http.Response, error) {
	response, err := by.Do(r)
	if err != nil {
		if cause := context.Cause(r.Context()); cause != nil {
			return nil, cause
		}
		var trust *fault.Error
		if errors.As(err, &trust) {
			return nil, trust
		}
		return nil, fault.Wrap(fault.Unavailable, err, "the server at %s does not answer", l.base)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }() // it says no more
	return nil, refusalOf(response)
}

// refusalOf returns what a server's refusal means.
func refusalOf(response *http.Response) error {
	if response.Header.Get(wire.HeaderVoid) != "" {
		return errVoid
	}
	if last, err := strconv.ParseInt(response.Header.Get(wire.HeaderLast), 10, 64); err == nil {
		return &lateError{last}
	}
	if response.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return errWhole
	}
	problem, is := httpwire.ReadProblem(response)
	if !is {
		return fault.New(fault.Unavailable, "the server, or a proxy before it, answered %d", response.StatusCode)
	}
	refused := problem.Fault()
	switch {
	case refused.Kind == fault.Unauthorized:
		return errRevoked
	case response.StatusCode >= http.StatusInternalServerError:
		return fault.Wrap(fault.Unavailable, refused, "the server answered %d: %s", response.StatusCode, refused.Msg)
	}
	return refused
}

// maxAnswer bounds an answer: an assignment has an input.
const maxAnswer = 64 << 20

// call sends a message and reads the answer.
func (l *link) call(ctx context.Context, path string, message, answer any) error {
	raw, err := strictjson.Encode(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := l.request(ctx, http.MethodPost, path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", httpwire.TypeJSON)
	return l.exchange(r, answer)
}

// get reads an answer.
func (l *link) get(ctx context.Context, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := l.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return l.exchange(r, answer)
}

// exchange sends a request and reads the answer; nil: it says no more than that it is a good one.
func (l *link) exchange(r *http.Request, answer any) error {
	response, err := l.do(l.control, r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	raw, err := safefs.ReadAtMost(response.Body, maxAnswer)
	if err != nil || answer == nil {
		return lostIf(err)
	}
	return lostIf(json.Unmarshal(raw, answer))
}

// lostIf is the fault of an answer that broke off.
func lostIf(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the server's answer broke off")
}

// callTime bounds a message: the longest is the end of a run, which is answered when it is stored.
const callTime = time.Minute

// repeat calls do until it succeeds, ctx ends, or the error is one that no repetition mends.
func (l *link) repeat(ctx context.Context, what string, do func() error) error {
	return l.goOn(ctx, what, func() (bool, error) { return false, do() })
}

// goOn is repeat for what may come a part of the way each time: then the next try comes soon.
func (l *link) goOn(ctx context.Context, what string, do func() (moved bool, err error)) error {
	waits := newWaits()
	for {
		moved, err := do()
		if moved {
			waits.Reset()
		}
		if err == nil || !mayPass(err) || ctx.Err() != nil {
			return err
		}
		l.logger.Info("will try again", "operation", what, fault.LogAttr(err))
		if err := pause.For(ctx, waits.NextBackOff()); err != nil {
			return err
		}
	}
}

// The waits between two tries: a server that is back is found within 5 seconds.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 4 * time.Second
)

// newWaits returns the waits between tries. They vary by chance, so that not all workers come at once.
func newWaits() *backoff.ExponentialBackOff {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = firstWait, longestWait
	waits.Multiplier, waits.RandomizationFactor = 2, 0.25
	return waits
}

// mayPass reports whether an error may be another one next time.
func mayPass(err error) bool {
	switch {
	case errors.Is(err, errVoid), errors.Is(err, errRevoked):
		return false
	case errors.Is(err, context.DeadlineExceeded): // of one try
		return true
	}
	kind := fault.KindOf(err)
	return kind == fault.Unavailable || kind == fault.Busy || kind == fault.Deadline
}

// leasePath is the address of a part of a lease.
func leasePath(lease string, parts ...string) string {
	return wire.Leases + url.PathEscape(lease) + "/" + strings.Join(parts, "/")
}

// namePath is a name as it stands in an address.
func namePath(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}
