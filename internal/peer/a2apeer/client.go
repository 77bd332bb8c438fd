package a2apeer

import (
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Options name an agent and how to ask it.
type Options struct {
	// URL is what /.well-known/agent-card.json lies below, or the address of the card itself if it ends in .json; https
	// if it names no scheme. Plain http is for loopback alone, unless PlainHTTP asks for it.
	URL       string
	PlainHTTP bool
	// Token is sent to this origin alone, as "Authorization: Bearer …", or by itself in the header that TokenHeader
	// names; "" sends none.
	Token       agenthttp.Secret
	TokenHeader string
	// Transport makes the requests; nil makes one.
	Transport http.RoundTripper
}

// Client asks one agent. It makes each request once: retries are its caller's business. It is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
}

// New returns a client that has not connected yet. The error is an Input fault for an invalid address or token.
func New(opts Options) (*Client, error) {
	base, err := httpwire.ParseAgentAddress(opts.URL, opts.PlainHTTP)
	if err != nil {
		return nil, err
	}
	if err := agenthttp.CheckToken(opts.Token); err != nil {
		return nil, err
	}
	g := &guard{origin: base, token: opts.Token, header: opts.TokenHeader, next: opts.Transport}
	if g.next == nil {
		g.next = agenthttp.NewTransport()
	}
	return &Client{base: base, http: &http.Client{Transport: g, CheckRedirect: agenthttp.SameOriginOnly}}, nil
}
