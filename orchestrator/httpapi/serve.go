package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

const (
	headerTime   = 10 * time.Second
	keepAlive    = 2 * time.Minute
	headerBytes  = 64 << 10
	shutdownTime = 10 * time.Second
)

// Serve serves on the listener until ctx ends, and closes it. Then streams and waits
// are ended, other requests get 10 seconds, and Serve returns nil. The runs go on: they
// are the Service's. It may be called for several listeners.
func (a *API) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           a.handler,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       keepAlive,
		MaxHeaderBytes:    headerBytes,
		BaseContext:       func(net.Listener) context.Context { return withServing(ctx) },
		ErrorLog:          slog.NewLogLogger(a.opts.Logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve http: %w", err)
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
		return fmt.Errorf("shut http down: %w", err)
	}
	return nil
}

type servingKey struct{}

// withServing returns a context for requests: they outlive the server's, for a while,
// but can tell when it ends.
func withServing(serving context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(serving), servingKey{}, serving)
}

var errServerEnds = fault.New(fault.Unavailable, "the server ends")

// attached returns a context for what a client watches: it ends with the request, and
// with the server. stop must be called.
func attached(request context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(request)
	serving, ok := request.Value(servingKey{}).(context.Context)
	if !ok {
		return ctx, func() { cancel(nil) }
	}
	unhook := context.AfterFunc(serving, func() { cancel(errServerEnds) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}
