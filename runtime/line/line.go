package line

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// pause is between one try to open a line and the next.
const pause = 250 * time.Millisecond

// maxStreams bounds what the far end may have open here. An honest one has maxConns and
// questions, and some more that one end has closed and the other hasn't yet.
const maxStreams = 2 * maxConns

// ErrDown says that the far end can't be asked now.
var ErrDown = errors.New("the line to the sandbox is down")

// Line is the near end. It is a net.Listener for the sandbox's connections.
type Line struct {
	conns   chan net.Conn
	closed  chan struct{}
	close   sync.Once
	session atomic.Pointer[yamux.Session] // nil while it is down
}

var _ net.Listener = (*Line)(nil)

// New returns a line that leads nowhere yet; see Keep.
func New() *Line { return &Line{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept returns the sandbox's next connection.
func (l *Line) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close lets Accept return. Connections that were accepted stay.
func (l *Line) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr is none that anybody could dial.
func (l *Line) Addr() net.Addr { return addr{} }

type addr struct{}

// Network is that of no dialler.
func (addr) Network() string { return "sandbox" }

// String says whose connection it is as well as can be.
func (addr) String() string { return "sandbox" }

// Keep keeps the line open until ctx ends: dial starts the far end and returns its stdin and
// stdout, and does so again whenever they end.
func (l *Line) Keep(ctx context.Context, dial func(context.Context) (io.ReadWriteCloser, error)) {
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

// carry passes on what comes from one far end, until that or ctx ends.
func (l *Line) carry(ctx context.Context, conn io.ReadWriteCloser) {
	session, err := yamux.Server(&guard{ReadWriteCloser: conn}, config())
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

// config is the same at both ends. They notice each other's end by that of the stream below.
func config() *yamux.Config {
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false
	config.AcceptBacklog = maxConns
	config.LogOutput = io.Discard
	return config
}
