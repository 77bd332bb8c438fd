package httpwire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	headerTime = 10 * time.Second // for a request's header to come
	keepAlive  = 2 * time.Minute  // that a connection may be idle
	writeTime  = 30 * time.Second // for a client of HTTP/2 to take bytes that it is sent; a handler bounds its own
)

// window is how many bytes of the bodies of a connection of HTTP/2 may come before anybody reads them: they count
// nowhere.
const window = 256 << 10

// Server says how Serve serves.
type Server struct {
	Name        string        // what is served, for errors: "http"
	Handler     http.Handler  // answers the requests
	HeaderBytes int           // of a request's header at most
	Drain       time.Duration // that requests under way have when the server ends
	ErrorLog    *slog.Logger  // of the server's own troubles
	ErrorLevel  slog.Level
	// Requests returns the context of all requests from that of the server; nil: they
	// have the server's own, and end with it.
	Requests func(context.Context) context.Context
}

// Serve serves on the listener until ctx ends, and closes it. It speaks HTTP/2 on the connections of tls.NewListener
// that agree on it. Then requests have the time of Drain, connections that are left are cut, and Serve returns nil. An
// error says that the listener or the shutdown failed.
func (s Server) Serve(ctx context.Context, listener net.Listener) error {
	requests := ctx
	if s.Requests != nil {
		requests = s.Requests(ctx)
	}
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    s.HeaderBytes,
		HTTP2: &http.HTTP2Config{
			WriteByteTimeout:          writeTime,
			MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: window,
		},
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(s.ErrorLog.Handler(), s.ErrorLevel),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", s.Name, err)
	case <-ctx.Done():
	}
	err := s.shutdown(ctx, server)
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// shutdown waits for the requests that are under way, and then for none.
func (s Server) shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Drain)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("shut %s down: %w", s.Name, err)
	}
	return nil
}

type servingKey struct{}

// Outliving returns a context for requests that may go on for a while after the server's
// context has ended. Attached and ServerEnds tell them when it has.
func Outliving(server context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(server), servingKey{}, server)
}

func serving(request context.Context) (server context.Context, known bool) {
	server, known = request.Value(servingKey{}).(context.Context)
	return server, known
}

// ErrServerEnds is the cause of the end of an Attached context whose server ends, an
// Unavailable fault.
var ErrServerEnds error = fault.New(fault.Unavailable, "the server ends")

// Attached returns a context for what a client watches. It ends with the request, and with
// the server of an Outliving one. stop must be called.
func Attached(request context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(request)
	server, known := serving(request)
	if !known {
		return ctx, func() { cancel(nil) }
	}
	unhook := context.AfterFunc(server, func() { cancel(ErrServerEnds) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// ServerEnds reports whether the server of an Outliving request has been asked to end.
func ServerEnds(request context.Context) bool {
	server, known := serving(request)
	return known && server.Err() != nil
}
