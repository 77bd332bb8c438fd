package gateway

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/script"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Limits on what is under way.
const (
	maxBody  = 32 << 20 // bytes of a request, and of an answer that isn't streamed
	maxCalls = 256      // of one run at a time
)

// Options are the settings of a Gateway. The zero Options are good ones, but for keys.
type Options struct {
	// Key returns a secret by its name; nil: there are none. secrets.Files.Read is one.
	Key    func(name string) (secrets.Secret, error)
	Logger *slog.Logger // ids, sizes and times only; nil discards

	Connect   time.Duration     // for a connection; 5 s
	FirstByte time.Duration     // until a provider begins to answer; 120 s
	Silence   time.Duration     // between two parts of an answer; 60 s
	Backoff   time.Duration     // before the second attempt; it doubles; 0.5 s
	Transport http.RoundTripper // of all providers; nil: the gateway's own
}

// Gateway passes requests for models on. It is safe for concurrent use.
type Gateway struct {
	opts    Options
	own     *http.Transport
	catalog atomic.Pointer[configured]

	mu    sync.Mutex
	gates map[string]*gate // of models and of providers
}

// New returns a gateway for what a catalogue names. It opens no connection. The error is a
// fault about the file of a script.
func New(c catalog.Catalog, opts Options) (*Gateway, error) {
	opts.Connect = cmp.Or(opts.Connect, 5*time.Second)
	opts.FirstByte = cmp.Or(opts.FirstByte, 2*time.Minute)
	opts.Silence = cmp.Or(opts.Silence, time.Minute)
	opts.Backoff = cmp.Or(opts.Backoff, time.Second/2)
	if opts.Key == nil {
		opts.Key = secrets.Files{}.Read
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{opts: opts, gates: map[string]*gate{}}
	if opts.Transport == nil {
		g.own = httpwire.NewTransport()
		dialer := net.Dialer{Timeout: opts.Connect, KeepAlive: 15 * time.Second}
		g.own.DialContext, g.own.TLSHandshakeTimeout = dialer.DialContext, opts.Connect
		g.own.MaxIdleConnsPerHost = 64
		g.opts.Transport = g.own
	}
	return g, g.Configure(c)
}

// Configure takes another catalogue for all calls that come from now on. After an error the
// old one stays.
func (g *Gateway) Configure(c catalog.Catalog) error {
	known := &configured{Catalog: c, scripts: map[string]*script.Script{}}
	for name, p := range c.Providers {
		if p.Kind != catalog.Script {
			continue
		}
		s, err := readScript(p.Answers)
		if err != nil {
			return err
		}
		known.scripts[name] = s
	}
	g.catalog.Store(known)
	for name, m := range c.Models {
		g.gate("model " + name).limit(rate{requests: int64(m.RPM), tokens: m.TPM})
	}
	for name, p := range c.Providers {
		g.gate("provider " + name).limit(rate{slots: int64(p.Concurrency)})
	}
	return nil
}

// Close closes connections that nobody uses.
func (g *Gateway) Close() {
	if g.own != nil {
		g.own.CloseIdleConnections()
	}
}

func (g *Gateway) gate(name string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates[name] == nil {
		g.gates[name] = newGate()
	}
	return g.gates[name]
}

// configured is a catalogue with the scripts of the providers that answer from files.
type configured struct {
	catalog.Catalog
	scripts map[string]*script.Script
}

// maxScript bounds the file of a script, in bytes.
const maxScript = 16 << 20

func readScript(path string) (*script.Script, error) {
	raw, err := safefs.ReadNamed(path, maxScript)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the script %s can't be read", fault.Quote(path)).
			WithHint("name a file with answers")
	}
	s, findings := script.Read(path, raw)
	if len(findings) > 0 {
		return nil, fault.New(fault.Input, "the script %s is not valid", fault.Quote(path)).WithFindings(findings)
	}
	return s, nil
}
