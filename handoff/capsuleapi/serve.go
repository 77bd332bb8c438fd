package capsuleapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	headerBytes    = 16 << 10
	shutdownTime   = 5 * time.Second
	maxConnections = 2 * maxRequests // of one run: the others are closed as they come
)

// Serve serves a Handler or a Dispatcher on the listener until ctx ends, and closes it. Then
// it answers waiting requests (503), gives others 5 seconds, and returns nil. A nil logger
// drops what it gets.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	server := httpwire.Server{
		Name: "capsule api", Handler: handler, HeaderBytes: headerBytes, Drain: shutdownTime,
		ErrorLog: newResponder(logger).log, ErrorLevel: slog.LevelDebug,
	}
	return server.Serve(ctx, &bounded{Listener: listener, slots: make(chan struct{}, maxConnections), pace: newPace()})
}

// bounded is a listener that bounds how many connections are open: each is an open file of
// ours, and a capsule may open as many as it likes. It closes those beyond, and takes them at
// the pace of requests, since one alone costs as much.
type bounded struct {
	net.Listener
	slots chan struct{}
	pace  pace
}

// Accept returns the next connection within the bound.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		b.pace.rest()
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.slots <- struct{}{}:
			return &slotted{Conn: conn, free: sync.OnceFunc(func() { <-b.slots })}, nil
		default:
			_ = conn.Close() // nothing was said yet
		}
	}
}

type slotted struct {
	net.Conn
	free func()
}

// Close closes the connection and makes room for another.
func (s *slotted) Close() error {
	defer s.free()
	return s.Conn.Close()
}

// CloseWrite lets the server say that it is done while it goes on reading, so that a
// client that still sends gets its answer.
func (s *slotted) CloseWrite() error {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// SyscallConn gives the kernel's socket to whoever carries much over it, if there is one.
func (s *slotted) SyscallConn() (syscall.RawConn, error) {
	socket, ok := s.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return socket.SyscallConn()
}
