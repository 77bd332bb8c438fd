// Package peer is what the clients of agents elsewhere share, whatever protocol the agents speak: one address, one
// token that goes to that address's origin alone, redirects that stay there, and our own words for what went wrong.
//
//	New           checks the address and the token
//	Client.HTTP   makes the requests; a protocol puts its own bounds around its transport
//	Lost          is the fault of a request that got no whole answer
//	Kinds         is the fault that a status of HTTP means
//	Violation     is an answer that breaks the protocol
//
// Agents are hostile: no error of this package quotes one.
//
// It must not know a protocol, runs, units or a terminal.
package peer

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Secret is a text that only the agent may see.
type Secret = secrets.Secret

// Options name an agent and how to ask it.
type Options struct {
	URL         string // https if it names no scheme
	PlainHTTP   bool   // plain http is allowed, also to another machine
	Token       Secret
	TokenHeader string            // has the token by itself; "": Authorization, as "Bearer …"
	Transport   http.RoundTripper // makes the requests; nil: a new one
}

// Client makes requests to the origin of one address. It makes each once: retries are its caller's business.
type Client struct {
	Base *url.URL
	HTTP *http.Client
}

// New returns a client that has not connected yet. The error is an Input fault for an invalid address or token.
func New(opts Options) (*Client, error) {
	base, err := httpwire.ParseAgentAddress(opts.URL, opts.PlainHTTP)
	if err != nil {
		return nil, err
	}
	if err := CheckToken(opts.Token); err != nil {
		return nil, err
	}
	o := &origin{url: base, token: opts.Token, header: opts.TokenHeader, next: opts.Transport}
	if o.next == nil {
		o.next = NewTransport()
	}
	return &Client{Base: base, HTTP: &http.Client{Transport: o, CheckRedirect: SameOriginOnly}}, nil
}

// CheckToken refuses characters that could end the header.
func CheckToken(s Secret) error {
	if strings.ContainsFunc(string(s), func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return fault.New(fault.Input, "the agent's token holds characters that no token has").
			WithHint("a token is one line of visible ASCII")
	}
	return nil
}

// NewTransport returns the transport that a Client makes for itself.
func NewTransport() *http.Transport {
	transport := httpwire.NewTransport()
	transport.MaxResponseHeaderBytes = 64 << 10
	return transport
}

// ErrForeign is the error of a request to another origin than the agent's. It was not made.
var ErrForeign = errors.New("the address has another origin than the agent's")

// origin makes requests to one origin, with the headers of each.
type origin struct {
	url    *url.URL
	token  Secret
	header string
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o *origin) RoundTrip(req *http.Request) (*http.Response, error) {
	if !SameOrigin(req.URL, o.url) {
		if req.Body != nil {
			_ = req.Body.Close() // nobody reads it
		}
		return nil, ErrForeign
	}
	ctx := req.Context()
	req = req.Clone(ctx)
	req.Header.Set("User-Agent", "aod")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header)) // nothing, if ctx has no trace
	switch {
	case o.token == "":
	case o.header != "":
		req.Header.Set(o.header, string(o.token))
	default:
		req.Header.Set("Authorization", "Bearer "+string(o.token))
	}
	return o.next.RoundTrip(req)
}

// SameOriginOnly follows a redirect that repeats the request at the same origin. No other origin gets the token or
// the inputs.
func SameOriginOnly(next *http.Request, via []*http.Request) error {
	const most = 3
	first := via[0]
	if len(via) <= most && next.Method == first.Method && SameOrigin(next.URL, first.URL) {
		return nil
	}
	return http.ErrUseLastResponse
}

// SameOrigin compares two origins as the web does: scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && PortOf(a) == PortOf(b)
}

// PortOf is the port of an address, also where its scheme alone tells.
func PortOf(u *url.URL) string {
	if port := u.Port(); port != "" || u.Scheme == "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}
