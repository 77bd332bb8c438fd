package handoff

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	headerTime     = 10 * time.Second
	keepAlive      = 2 * time.Minute
	headerBytes    = 16 << 10
	shutdownTime   = 5 * time.Second
	maxConnections = 2 * maxRequests // of one run: the others are closed as they come
)

// Serve serves the run on the listener as the function Serve does. The calls go on.
func (h *Handler) Serve(ctx context.Context, listener net.Listener) error {
	return Serve(ctx, listener, h, h.log)
}

// Serve serves a Handler or a Parking on the listener until ctx ends, and closes it.
// Waiting requests are answered then (503), others have 5 seconds, and Serve returns nil.
// A nil logger drops what it gets.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    headerBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(newAnswers(logger).log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	listener = &bounded{Listener: listener, slots: make(chan struct{}, maxConnections)}
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve capsule api: %w", err)
	case <-ctx.Done():
	}
	err := shutdown(ctx, server)
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// shutdown waits for the requests that are under way, and then for none.
func shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("shut capsule api down: %w", err)
	}
	return nil
}

// bounded is a listener that closes connections beyond a number at once: each is an open
// file of ours, and a capsule may open as many as it likes.
type bounded struct {
	net.Listener
	slots chan struct{}
}

// Accept returns the next connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
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
