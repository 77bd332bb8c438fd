package upstream

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Path is where the upstreams lie in the capsule API.
const Path = outside.UpstreamPath

// Upstream is a service whose key stays outside.
type Upstream struct {
	URL       string   // below which all lies that is asked of it; without a slash at its end
	PlainHTTP bool     // that the address may be plain http, though it isn't loopback's
	Secret    string   // the name of its key; "" sends none
	Header    string   // that has the key, in its canonical form
	Scheme    string   // stands before the key; "": the key alone
	Methods   []string // that are passed on
	Paths     []string // below URL: what they name and all below it is passed on; nil: all
	CAFile    string   // with the roots that its certificate is held against; "": the system's
}

// Table are the upstreams by name.
type Table map[string]Upstream

// Options are the settings of Upstreams. The zero Options are good ones, but for keys.
type Options struct {
	// Key returns a secret by its name, for each request; nil: there are none.
	Key    func(name string) (secrets.Secret, error)
	Logger *slog.Logger // ids, names of upstreams, sizes and times only; nil discards

	Connect   time.Duration // for a connection; 5 s
	FirstByte time.Duration // until an answer begins, while nothing is sent; 120 s
	Silence   time.Duration // between two parts of a body; 60 s
}

// Limits on what is under way.
const (
	maxRequests     = 32       // of one run at a time
	maxAnswerHeader = 64 << 10 // bytes
	maxRoots        = 1 << 20  // bytes of a file of roots
)

// Upstreams passes requests on. It is safe for concurrent use.
type Upstreams struct {
	opts  Options
	known map[string]*service
}

// service is an upstream with its connections.
type service struct {
	Upstream
	name      string
	base      *url.URL
	transport *http.Transport
}

// New returns what passes requests on to the upstreams of a table. It opens no connection. The
// error is an Input fault about an address or a file of roots.
func New(table Table, opts Options) (*Upstreams, error) {
	opts.Connect = cmp.Or(opts.Connect, 5*time.Second)
	opts.FirstByte = cmp.Or(opts.FirstByte, 2*time.Minute)
	opts.Silence = cmp.Or(opts.Silence, time.Minute)
	if opts.Key == nil {
		opts.Key = secrets.Files{}.Read
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	u := &Upstreams{opts: opts, known: map[string]*service{}}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		s, err := newService(name, table[name], opts.Connect)
		if err != nil {
			return nil, err
		}
		u.known[name] = s
	}
	return u, nil
}

// Names are the names of all upstreams, sorted. There are none in a nil *Upstreams.
func (u *Upstreams) Names() []string {
	if u == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(u.known))
}

// CheckKeys returns a finding for each of some upstreams whose key can't be used now.
func (u *Upstreams) CheckKeys(names []string) (findings []fault.Finding) {
	for _, name := range names {
		s := u.known[name]
		if s == nil {
			continue
		}
		if _, err := u.key(s); err != nil {
			public := fault.Public(err)
			findings = append(findings,
				fault.Finding{Message: "upstreams." + name + ": " + public.Msg, Hint: public.Hint})
		}
	}
	return findings
}

// Close closes connections that nobody uses.
func (u *Upstreams) Close() {
	if u == nil {
		return
	}
	for _, s := range u.known {
		s.transport.CloseIdleConnections()
	}
}

func newService(name string, of Upstream, connect time.Duration) (*service, error) {
	base, err := url.Parse(of.URL)
	if err != nil {
		return nil, fault.New(fault.Input, "the address of the upstream %s can't be read", name).
			WithHint("see upstreams.%s.url", name)
	}
	s := &service{Upstream: of, name: name, base: base, transport: httpwire.NewTransport()}
	dialer := net.Dialer{Timeout: connect, KeepAlive: 15 * time.Second}
	s.transport.DialContext, s.transport.TLSHandshakeTimeout = dialer.DialContext, connect
	s.transport.MaxResponseHeaderBytes = maxAnswerHeader
	s.transport.MaxIdleConnsPerHost = maxRequests
	if of.CAFile == "" {
		return s, nil
	}
	pool, err := roots(of.CAFile)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "upstreams.%s.ca_file: there are no certificates to be had from %s",
			name, fault.Quote(of.CAFile)).
			WithHint("name a file with certificates in PEM")
	}
	s.transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return s, nil
}

func roots(path string) (*x509.CertPool, error) {
	raw, err := safefs.ReadNamed(path, maxRoots)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fault.New(fault.Input, "the file has no certificate in PEM")
	}
	return pool, nil
}
