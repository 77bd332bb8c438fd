package agenthttp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// The endpoints, below the agent's address (section "Overview + endpoints").
const (
	SyncPath   = "/agents/run/sync"
	StreamPath = "/agents/run/stream"
)

// The defaults of Options.
const (
	DefaultTimeout = 10 * time.Minute
	DefaultSilence = 2 * time.Minute
)

// Options name an agent and how to call it.
type Options struct {
	// URL is the base address of the endpoints; https if it names no scheme. Plain http is
	// allowed for loopback alone, unless PlainHTTP asks for it.
	URL       string
	PlainHTTP bool
	// Token is sent to this origin alone, as "Authorization: Bearer …", or by itself in
	// the header that TokenHeader names; "" sends none.
	Token       Secret
	TokenHeader string
	// Timeout bounds a call. Silence bounds the time in which a stream brings nothing at
	// all, not even a comment. 0 is the default.
	Timeout time.Duration
	Silence time.Duration
	Limits  Limits
	// HTTP is used for its transport. Its redirects, cookies and timeout are ignored; nil
	// makes one.
	HTTP *http.Client
	// Log gets ids, status codes and durations, never a body; nil logs nothing.
	Log *slog.Logger
}

// Limits bound what is read from an agent, in bytes. A limit of 0 is the default.
type Limits struct {
	Answer int64 // the body of a sync answer
	Line   int64 // one line of a stream, without its end
	Event  int64 // the data of one event of a stream
	Stream int64 // a stream as a whole
}

// maxRefusal bounds the body of an error response, in bytes; the rest is ignored.
const maxRefusal = 1 << 20

// DefaultLimits are 16 MiB for an answer, a line and an event, and 256 MiB for a stream.
func DefaultLimits() Limits {
	const answer = 16 << 20
	return Limits{Answer: answer, Line: answer, Event: answer, Stream: 16 * answer}
}

// orDefault replaces zero limits by the defaults.
func (l Limits) orDefault() Limits {
	otherwise := DefaultLimits()
	return Limits{
		Answer: cmp.Or(max(l.Answer, 0), otherwise.Answer), Line: cmp.Or(max(l.Line, 0), otherwise.Line),
		Event: cmp.Or(max(l.Event, 0), otherwise.Event), Stream: cmp.Or(max(l.Stream, 0), otherwise.Stream),
	}
}

// Events are the limits of a stream's reader.
func (l Limits) Events() httpwire.EventLimits {
	l = l.orDefault()
	return httpwire.EventLimits{Line: l.Line, Event: l.Event, Stream: l.Stream, Whose: "the stream of the agent"}
}

// Client calls one agent. It makes each call once: retries are its caller's business. It is
// safe for concurrent use.
type Client struct {
	far  *peer.Client
	opts Options
}

// New returns a client that has not connected yet. The error is an Input fault for an
// invalid address or token.
func New(opts Options) (*Client, error) {
	far, err := peer.New(peer.Options{
		URL: opts.URL, PlainHTTP: opts.PlainHTTP, Token: opts.Token, TokenHeader: opts.TokenHeader,
		Transport: transportOf(opts.HTTP),
	})
	if err != nil {
		return nil, err
	}
	opts.Limits = opts.Limits.orDefault()
	opts.Timeout = cmp.Or(max(opts.Timeout, 0), DefaultTimeout)
	opts.Silence = cmp.Or(max(opts.Silence, 0), DefaultSilence)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{far: far, opts: opts}, nil
}

// transportOf is the transport of a client that was given, nil: none was.
func transportOf(given *http.Client) http.RoundTripper {
	switch {
	case given == nil:
		return nil
	case given.Transport == nil:
		return http.DefaultTransport
	}
	return given.Transport
}

// request makes a request to an address below the agent's base address.
func (c *Client) request(ctx context.Context, x Exchange) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, x.Method, c.far.Base.JoinPath(x.Path).String(), bytes.NewReader(x.Body))
	if err != nil {
		return nil, fault.New(fault.Input, "no request can be made to the agent's address")
	}
	req.Header.Set("Accept", x.Accept)
	if x.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// Exchange is one HTTP request to an agent.
type Exchange struct {
	Method string
	Path   string // below the agent's address
	Accept string // the media type that is wanted
	Body   []byte // JSON; nil is none
}

// Answer is an agent's answer to an Exchange, whatever its status is. A failed read of its
// body is a fault, as the errors of Do are.
type Answer struct {
	*http.Response
	client *Client
	over   func() error            // why the time for it ended, nil before that
	end    context.CancelCauseFunc // cuts the connection
	stop   context.CancelFunc
}

// Do makes one request and returns the answer as it comes: Run and Stream read it by the
// contract. Options.Timeout bounds the time until Close. No answer is an Unavailable fault,
// a timeout a Deadline fault; the end of ctx is its own error.
func (c *Client) Do(ctx context.Context, x Exchange) (*Answer, error) {
	ctx, stop := context.WithTimeoutCause(ctx, c.opts.Timeout, errTimeout)
	ctx, end := context.WithCancelCause(ctx)
	response, err := c.exchange(ctx, x) //nolint:bodyclose // Answer.Close closes it
	if err != nil {
		end(nil)
		stop()
		return nil, err
	}
	answer := &Answer{Response: response, client: c, end: end, stop: stop}
	answer.over = func() error {
		if ctx.Err() == nil {
			return nil
		}
		return c.ended(ctx)
	}
	answer.Body = &body{
		response.Body,
		func(err error) error { return c.lost(ctx, err, "the answer of the agent at %s broke off") },
	}
	return answer, nil
}

func (c *Client) exchange(ctx context.Context, x Exchange) (*http.Response, error) {
	req, err := c.request(ctx, x)
	if err != nil {
		return nil, err
	}
	response, err := c.far.HTTP.Do(req)
	if err != nil {
		return nil, c.lost(ctx, err, "the agent at %s does not answer")
	}
	return response, nil
}

var (
	errTimeout = errors.New("the time for the call is over")
	errSilent  = errors.New("the agent has been silent for too long")
)

// lost is the error for a request without a whole answer. what says what is missing, with a place for the agent's host.
func (c *Client) lost(ctx context.Context, err error, what string) error {
	if ctx.Err() != nil {
		return c.ended(ctx)
	}
	return peer.Lost(err, what, c.far.Base.Host)
}

// ended says why a context ended: by a limit of ours, or by the caller.
func (c *Client) ended(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return fault.Wrap(fault.Deadline, errTimeout, "the agent at %s took longer than %s", c.far.Base.Host,
			c.opts.Timeout)
	case errors.Is(cause, httpwire.ErrSilent):
		return fault.Wrap(fault.Deadline, errSilent, "the agent at %s sent nothing for %s", c.far.Base.Host,
			c.opts.Silence).
			WithHint("agents keep a stream alive with comments")
	default:
		return cause
	}
}

// Close closes the connection, even if more is to come.
func (a *Answer) Close() {
	a.end(nil)
	_ = a.Body.Close() // it was read as far as it is wanted
	a.stop()
}

// ReadAll reads the body. If it is larger than Limits.Answer, the error is a TooLarge fault.
func (a *Answer) ReadAll() ([]byte, error) {
	most := a.client.opts.Limits.Answer
	raw, err := io.ReadAll(io.LimitReader(a.Body, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(raw)) > most:
		return nil, fault.New(fault.TooLarge, "the agent's answer is more than is taken: the limit is %d bytes", most)
	}
	return raw, nil
}

// Events reads the body as a stream of events, within Limits.
func (a *Answer) Events() *httpwire.EventReader { return a.eventsOf(a.Body) }

func (a *Answer) eventsOf(r io.Reader) *httpwire.EventReader {
	return httpwire.NewEventReader(r, a.client.opts.Limits.Events())
}

// body is the body of an answer. It converts errors: those of net/http may quote the agent.
type body struct {
	io.ReadCloser
	broke func(error) error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.broke(err)
	}
	return n, err
}

// Secret is a text that only the agent may see.
type Secret = peer.Secret

// Violation is an answer that breaks the contract, with the rule's id in a Report. It is an
// Unsupported fault: a retry would bring the same answer.
type Violation = peer.Violation

// Why the server at an https address isn't trusted: causes of Unavailable faults.
var (
	ErrCertificate = peer.ErrCertificate
	ErrHandshake   = peer.ErrHandshake
)

// NewTransport returns the transport that a Client makes for itself. Use it to share one
// among Clients, or to trust more than the system does.
func NewTransport() *http.Transport { return peer.NewTransport() }
