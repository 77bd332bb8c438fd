package remote

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/agentapi"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/runtime"
)

// agents calls agents elsewhere. What it keeps of each unit is the connections, for the
// next call: the secret is read anew.
type agents struct {
	secrets secrets
	logger  *slog.Logger

	mu    sync.Mutex
	known map[string]*connections // by the unit's name
}

// connections are those to the agent of one version of a unit.
type connections struct {
	url       string
	ca        []byte
	transport *http.Transport
}

func newAgents(s secrets, logger *slog.Logger) *agents {
	return &agents{secrets: s, logger: logger, known: map[string]*connections{}}
}

// client returns a client for one request to a unit's agent. The time is the run's; its own
// bounds only lie behind that. The error is a fault about the secret.
func (a *agents) client(unit string, remote *capsule.Remote, limits runtime.Limits) (*agentapi.Client, error) {
	opts := agentapi.Options{
		URL: remote.URL, PlainHTTP: remote.PlainHTTP,
		Timeout: limits.Timeout + time.Minute, Silence: limits.Timeout + time.Minute,
		Limits: answerLimits(limits), HTTP: &http.Client{Transport: a.transport(unit, remote)}, Log: a.logger,
	}
	if auth := remote.Auth; auth != nil {
		secret, err := a.secrets.read(auth.Secret)
		if err != nil {
			return nil, err
		}
		opts.Token, opts.TokenHeader = secret, auth.Header
		if auth.Scheme != "" {
			opts.Token = agentapi.Secret(auth.Scheme+" ") + secret
		}
	}
	return agentapi.New(opts)
}

// answerLimits leaves room for what stands beside the outputs of an answer.
func answerLimits(limits runtime.Limits) agentapi.Limits {
	const beside = 1 << 20
	one := limits.ResultBytes + beside
	return agentapi.Limits{Answer: one, Line: one, Event: one, Stream: max(agentapi.DefaultLimits().Stream, 2*one)}
}

// transport returns the connections of a unit, new ones when it has another address or
// other certificates now.
func (a *agents) transport(unit string, remote *capsule.Remote) *http.Transport {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.known[unit]
	if old != nil && old.url == remote.URL && bytes.Equal(old.ca, remote.CA) {
		return old.transport
	}
	if old != nil {
		old.transport.CloseIdleConnections() // those in use close when they become idle
	}
	made := &connections{url: remote.URL, ca: remote.CA, transport: agentapi.NewTransport()}
	if len(remote.CA) > 0 {
		made.transport.TLSClientConfig = &tls.Config{RootCAs: trusting(remote.CA), MinVersion: tls.VersionTLS12}
	}
	a.known[unit] = made
	return made.transport
}

// trusting are the certificates of the system and some more.
func trusting(pem []byte) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the system has none
	}
	pool.AppendCertsFromPEM(pem)
	return pool
}

// close closes the connections that nobody uses.
func (a *agents) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.known {
		c.transport.CloseIdleConnections()
	}
}
