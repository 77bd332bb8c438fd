// Package tunnel carries the connections of the capsule API out of a sandbox whose engine
// runs elsewhere. Such a sandbox can't have a socket of this host.
//
// At the near end, the orchestrator accepts connections from a Listener. At the far end, in
// the sandbox, Answer (run by package line) listens on a unix socket. It multiplexes the
// connections over its stdin and stdout, which the engine carries like those of any program.
// A sandbox without a network stays without one. What protects the connection to the engine
// protects the API as well. The engine's connection says which sandbox speaks: no secret is
// needed.
//
// The far end also tells how much of the engine's disk the run uses.
//
// Everything that comes from the far end is hostile: it runs as the same user as the
// program. The package knows nothing of runs, and of engines only a dial function.
//
// Its Go API may change with every release: see docs/stability.md.
package tunnel

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// pause is the time between two attempts to start the far end.
const pause = 250 * time.Millisecond

// maxStreams bounds the streams that the far end may have open here. An honest far end has
// maxConns, those of questions, and a few that only one end has closed yet.
const maxStreams = 2 * maxConns

// Options bound what the near end waits for.
type Options struct {
	Frame  time.Duration // for the rest of a frame; 0 means 10 seconds
	Answer time.Duration // for the far end's answer to Usage; 0 means 10 seconds
}

const defaultWait = 10 * time.Second

// ErrDown says that the far end can't be asked at the moment.
var ErrDown = errors.New("the tunnel to the sandbox is down")

// Listener is the near end. It is a net.Listener for the sandbox's connections.
type Listener struct {
	options Options
	conns   chan net.Conn
	closed  chan struct{}
	close   sync.Once
	session atomic.Pointer[yamux.Session] // nil while there is no far end
}

var _ net.Listener = (*Listener)(nil)

// New returns a listener without a far end; KeepOpen starts one.
func New(o Options) *Listener {
	o.Frame, o.Answer = cmp.Or(o.Frame, defaultWait), cmp.Or(o.Answer, defaultWait)
	return &Listener{options: o, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept returns the sandbox's next connection, and net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close lets Accept return. Accepted connections stay open. It may be called again.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that nobody can dial.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

// Network returns a word that no dialler knows.
func (addr) Network() string { return "sandbox" }

// String returns the same word: which sandbox it is isn't known here.
func (addr) String() string { return "sandbox" }

// KeepOpen keeps the tunnel open until ctx ends. dial starts the far end and returns its
// stdin and stdout. It is called again whenever they end, and when it fails.
func (l *Listener) KeepOpen(ctx context.Context, dial func(context.Context) (io.ReadWriteCloser, error)) {
	for ctx.Err() == nil {
		if conn, err := dial(ctx); err == nil {
			l.carry(ctx, conn)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// carry accepts the connections of one far end, until that or ctx ends.
func (l *Listener) carry(ctx context.Context, conn io.ReadWriteCloser) {
	session, err := yamux.Server(&guard{ReadWriteCloser: conn, limit: l.options.Frame}, config())
	if err != nil {
		_ = conn.Close() // nothing was said yet
		return
	}
	defer func() { _ = session.Close() }() // its connections end with it
	defer context.AfterFunc(ctx, func() { _ = session.Close() })()
	l.session.Store(session)
	defer l.session.Store(nil)
	for {
		stream, err := session.Accept()
		if err != nil || session.NumStreams() > maxStreams {
			return
		}
		select {
		case l.conns <- stream:
		case <-l.closed:
			_ = stream.Close()
		case <-session.CloseChan():
			return
		case <-ctx.Done():
			return
		}
	}
}

// config is the same at both ends. Each notices the other's end when conn ends: no pings.
func config() *yamux.Config {
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false
	config.AcceptBacklog = maxConns
	config.LogOutput = io.Discard
	return config
}
