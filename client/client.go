package client

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Options name the server and how to reach it.
type Options struct {
	// Server is the server's address: http://HOST:PORT or https://…, with the path below
	// which a proxy serves it, if any.
	Server string
	// Token is sent to this server alone; "" sends none.
	Token string
	// TokenFrom returns the token in place of Token, if it isn't nil. It is asked before each
	// request, and again when the server refuses what it gave: a server that is starting may
	// not have written its token yet. It must be safe for concurrent use.
	TokenFrom func() (string, error)
	// Team is the one in which requests are made, where the token is of several or of the whole server; "": in all.
	Team string
	// TLS is how an https server is trusted; nil: by the system's roots. It is no matter where HTTP is set.
	TLS *tls.Config
	// HTTP is used for its transport. Its rule for redirects is ignored: none is followed.
	// A Timeout in it also ends the streams. nil makes one.
	HTTP *http.Client
}

// Client is a client of one server: what it does with the nouns of the server is in its fields. It is
// safe for concurrent use.
type Client struct {
	Runs      Runs
	Files     Files
	Artifacts Artifacts
	Changes   Changes
	Flows     Flows
	Questions Questions
	Sessions  Sessions
	Schedules Schedules
	Units     Units
	Models    Models
	News      News
	Tokens    Tokens
	Webhooks  Webhooks
	Workers   Workers

	conn *conn
}

// New returns a client that has not connected yet. The error is an Input fault for an
// invalid address or token.
func New(opts Options) (*Client, error) {
	base, err := parseServer(opts.Server)
	if err != nil {
		return nil, err
	}
	token := opts.TokenFrom
	if token == nil {
		token = func() (string, error) { return opts.Token, nil }
	}
	if _, err := checkedToken(token); err != nil {
		return nil, err
	}
	if opts.Team != "" {
		if err := api.CheckTeam(opts.Team); err != nil {
			return nil, err
		}
	}
	plain := http.Client{Transport: newTransport(opts.TLS)}
	if opts.HTTP != nil {
		plain = *opts.HTTP
	}
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return over(&conn{base: base, token: token, team: opts.Team, http: &plain, pause: pause.For}), nil
}

func over(c *conn) *Client {
	return &Client{
		Runs: Runs{c}, Files: Files{c}, Artifacts: Artifacts{c}, Changes: Changes{c}, Flows: Flows{c},
		Questions: Questions{c}, Sessions: Sessions{c}, Schedules: Schedules{c}, Units: Units{c}, Models: Models{c},
		News: News{c}, Tokens: Tokens{c}, Webhooks: Webhooks{c}, Workers: Workers{c}, conn: c,
	}
}

// Patient returns a client of the same server that waits longer for it while it is away, such as for a restart: each
// call and each stream as long as most, in which it tries again. away is told why, once in each time that a call or a
// stream misses the server, before the third try; it may be called by several goroutines at once.
func (c *Client) Patient(most time.Duration, away func(error)) *Client {
	patient := *c.conn
	patient.patience, patient.away = most, away
	return over(&patient)
}

// checkedToken returns the token if it can be sent.
func checkedToken(from func() (string, error)) (string, error) {
	token, err := from()
	if err == nil && strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fault.New(fault.Input, "the token holds characters that no token has").
			WithHint("a token is one line of visible ASCII")
	}
	return token, err
}

// Server returns the server's address.
func (c *Client) Server() string { return c.conn.base.String() }

func parseServer(address string) (*url.URL, error) {
	const form = "write http://HOST:PORT or https://HOST"
	base, err := url.Parse(address)
	switch {
	case err != nil: // the error may show a password
		return nil, fault.New(fault.Input, "the server's address can't be read").WithHint(form)
	case base.User != nil:
		return nil, fault.New(fault.Input, "the server's address must not hold a password").
			WithHint("give the server's token by AOD_TOKEN_FILE")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, fault.New(fault.Input, "%q is not the address of a server", address).WithHint(form)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fault.New(fault.Input, "the server's address %q goes on after its path", address).WithHint(form)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.RawPath = ""
	return base, nil
}

// newTransport makes a transport that waits a second for the refusal of an upload before it
// sends the upload.
func newTransport(trust *tls.Config) *http.Transport {
	transport := httpwire.NewTransport()
	transport.TLSClientConfig = trust
	transport.ExpectContinueTimeout = time.Second
	return transport
}
