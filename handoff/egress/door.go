package egress

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/capsule/outside"
)

// Resolver looks up the addresses of a name, as net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options are the settings of a Door. A zero field has the default that is named with it.
type Options struct {
	Resolver Resolver            // net.DefaultResolver
	Private  []outside.Exception // hosts that may be at addresses which aren't public; none
	Idle     time.Duration
	Connect  time.Duration // for looking up a name and connecting to it; 10 s
	Hello    time.Duration // for the TLS client's first message; 10 s
	Tunnels  int           // that a run may have at once; 32
	Logger   *slog.Logger  // ids and sizes only; nil discards
}

func (o Options) withDefaults() Options {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	o.Idle = cmp.Or(o.Idle, 5*time.Minute)
	o.Connect = cmp.Or(o.Connect, 10*time.Second)
	o.Hello = cmp.Or(o.Hello, 10*time.Second)
	o.Tunnels = cmp.Or(o.Tunnels, 32)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Door lets runs reach hosts. It is safe for concurrent use.
type Door struct {
	opts                      Options
	private                   atomic.Pointer[[]outside.Exception] // Options.Private, or what Except gave
	transport                 *http.Transport                     // of requests without TLS
	interfaces                func() ([]net.Addr, error)          // the addresses of this machine
	tunnels, refused, in, out atomic.Int64
}

// Totals are the counts of all runs of a Door since it was made.
type Totals struct{ Tunnels, Refused, BytesIn, BytesOut int64 }

// New returns a Door. It needs no closing: what its sessions opened ends with them.
func New(opts Options) *Door {
	d := &Door{opts: opts.withDefaults(), interfaces: net.InterfaceAddrs}
	d.Except(opts.Private)
	d.transport = &http.Transport{
		DialContext:            dialTarget,
		DisableKeepAlives:      true, // a connection is one request's, and counted as such
		DisableCompression:     true, // the bytes are the program's own
		MaxResponseHeaderBytes: 64 << 10,
		ResponseHeaderTimeout:  d.opts.Idle,
	}
	return d
}

// Except has other hosts than before be those that may be at addresses which aren't public, for connections that begin
// from now on.
func (d *Door) Except(private []outside.Exception) { d.private.Store(&private) }

// Totals returns what all runs did so far.
func (d *Door) Totals() Totals {
	return Totals{Tunnels: d.tunnels.Load(), Refused: d.refused.Load(), BytesIn: d.in.Load(), BytesOut: d.out.Load()}
}
