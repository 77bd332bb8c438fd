package remote

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/peer"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/runtime"
)

// clients makes a client for each call of an agent. It keeps the connections of each unit for
// the next call. The secret is read anew for each call.
type clients struct {
	secrets secrets.Files
	door    *egress.Door // the way to the agents of uploaded units
	logger  *slog.Logger

	mu    sync.Mutex
	known map[string]*connections // by the unit's name
}

// connections are those to the agent of one version of a unit.
type connections struct {
	url       string
	ca        []byte
	uploaded  bool
	transport *http.Transport
}

func newClients(s secrets.Files, door *egress.Door, logger *slog.Logger) *clients {
	return &clients{secrets: s, door: door, logger: logger, known: map[string]*connections{}}
}

// client returns a client for one request to a unit's agent, and the secret that it sends. The
// run's limit of time ends the request; the client's own timeouts are longer. The error is a
// fault about the secret.
func (c *clients) client(
	u *unit.Unit, remote *capsule.Remote, limits runtime.Limits,
) (client *agenthttp.Client, secret agenthttp.Secret, err error) {
	opts := agenthttp.Options{
		URL: remote.URL, PlainHTTP: remote.PlainHTTP,
		Timeout: limits.Timeout + time.Minute, Silence: limits.Timeout + time.Minute,
		Limits: answerLimits(limits), HTTP: &http.Client{Transport: c.transport(u, remote)}, Log: c.logger,
	}
	if secret, opts.Token, opts.TokenHeader, err = c.credentials(remote.Auth); err != nil {
		return nil, "", err
	}
	client, err = agenthttp.New(opts)
	return client, secret, err
}

// peer is client for an agent of the A2A protocol.
func (c *clients) peer(
	u *unit.Unit, remote *capsule.Remote,
) (client *a2apeer.Client, secret agenthttp.Secret, err error) {
	opts := a2apeer.Options{URL: remote.URL, PlainHTTP: remote.PlainHTTP, Transport: c.transport(u, remote)}
	if secret, opts.Token, opts.TokenHeader, err = c.credentials(remote.Auth); err != nil {
		return nil, "", err
	}
	client, err = a2apeer.New(opts)
	return client, secret, err
}

// credentials reads the secret that an agent is sent, and returns it with the header that has it.
func (c *clients) credentials(auth *capsule.Auth) (secret, token agenthttp.Secret, header string, err error) {
	if auth == nil {
		return "", "", "", nil
	}
	if secret, err = c.secrets.Read(auth.Secret); err != nil {
		return "", "", "", err
	}
	if auth.Scheme == "" {
		return secret, secret, auth.Header, nil
	}
	return secret, agenthttp.Secret(auth.Scheme+" ") + secret, auth.Header, nil
}

// answerLimits returns limits with room for the members beside the outputs of an answer.
func answerLimits(limits runtime.Limits) agenthttp.Limits {
	const beside = 1 << 20
	one := limits.ResultBytes + beside
	return agenthttp.Limits{Answer: one, Line: one, Event: one, Stream: max(agenthttp.DefaultLimits().Stream, 2*one)}
}

// transport returns the connections of a unit. If its address, its certificates or its source have
// changed, they are new ones.
func (c *clients) transport(u *unit.Unit, remote *capsule.Remote) http.RoundTripper {
	c.mu.Lock()
	defer c.mu.Unlock()
	uploaded := u.Source == unit.FromUpload
	old := c.known[u.Name]
	if old != nil && old.url == remote.URL && bytes.Equal(old.ca, remote.CA) && old.uploaded == uploaded {
		return old.roundTripper()
	}
	if old != nil {
		old.transport.CloseIdleConnections() // those in use close when they become idle
	}
	made := &connections{url: remote.URL, ca: remote.CA, uploaded: uploaded, transport: peer.NewTransport()}
	if uploaded {
		made.transport.Proxy = nil // its address would be the one that is checked
		made.transport.DialContext = c.dialUploaded
	}
	if len(remote.CA) > 0 {
		made.transport.TLSClientConfig = &tls.Config{RootCAs: certPool(remote.CA), MinVersion: tls.VersionTLS12}
	}
	c.known[u.Name] = made
	return made.roundTripper()
}

func (c *connections) roundTripper() http.RoundTripper {
	if c.uploaded {
		return staying{c.transport}
	}
	return c.transport
}

// certPool returns the certificates of the system and those of a unit.
func certPool(pem []byte) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the system has none
	}
	pool.AppendCertsFromPEM(pem)
	return pool
}

// close closes the connections that nobody uses.
func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, each := range c.known {
		each.transport.CloseIdleConnections()
	}
}
