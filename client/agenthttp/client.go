package agenthttp

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/agent-on-demand/aod/api/fault"
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

// Client calls one agent. It makes each call once: retries are its caller's business. It is
// safe for concurrent use.
type Client struct {
	base *url.URL
	opts Options
	http *http.Client
}

// New returns a client that has not connected yet. The error is an Input fault for an
// invalid address or token.
func New(opts Options) (*Client, error) {
	base, err := httpwire.ParseAgentAddress(opts.URL, opts.PlainHTTP)
	if err != nil {
		return nil, err
	}
	if err := CheckToken(opts.Token); err != nil {
		return nil, err
	}
	opts.Limits = opts.Limits.orDefault()
	opts.Timeout = cmp.Or(max(opts.Timeout, 0), DefaultTimeout)
	opts.Silence = cmp.Or(max(opts.Silence, 0), DefaultSilence)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{base: base, opts: opts, http: newHTTP(opts.HTTP)}, nil
}

func newHTTP(given *http.Client) *http.Client {
	plain := http.Client{Transport: NewTransport()}
	if given != nil {
		plain = *given
	}
	plain.CheckRedirect = SameOriginOnly
	plain.Jar, plain.Timeout = nil, 0
	return &plain
}

// SameOriginOnly follows a redirect that repeats the request at the same origin. No other
// origin gets the token or the inputs.
func SameOriginOnly(next *http.Request, via []*http.Request) error {
	const most = 3
	first := via[0]
	if len(via) <= most && next.Method == first.Method && SameOrigin(next.URL, first.URL) {
		return nil
	}
	return http.ErrUseLastResponse
}

// NewTransport returns the transport that a Client makes for itself. Use it to share one
// among Clients, or to trust more than the system does.
func NewTransport() *http.Transport {
	transport := httpwire.NewTransport()
	transport.MaxResponseHeaderBytes = 64 << 10
	return transport
}

// request makes a request to an address below the agent's base address.
func (c *Client) request(ctx context.Context, x Exchange) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, x.Method, c.base.JoinPath(x.Path).String(), bytes.NewReader(x.Body))
	if err != nil {
		return nil, fault.New(fault.Input, "no request can be made to the agent's address")
	}
	req.Header.Set("User-Agent", "aod")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header)) // nothing, if ctx has no trace
	req.Header.Set("Accept", x.Accept)
	if x.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.opts.Token == "":
	case c.opts.TokenHeader != "":
		req.Header.Set(c.opts.TokenHeader, string(c.opts.Token))
	default:
		req.Header.Set("Authorization", "Bearer "+string(c.opts.Token))
	}
	return req, nil
}
