package httpapi

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	headerBytes  = 64 << 10
	shutdownTime = 10 * time.Second
)

// Serve serves on the listener until ctx ends, and closes it. Then streams and waits are
// ended, other requests get 10 seconds, and Serve returns nil. The runs go on: they are the
// Service's. Serve may be called for several listeners.
func (a *API) Serve(ctx context.Context, listener net.Listener) error {
	server := httpwire.Server{
		Name: "http", Handler: a.handler, HeaderBytes: headerBytes, Drain: shutdownTime,
		ErrorLog: a.opts.Logger, ErrorLevel: slog.LevelWarn, Requests: httpwire.Outliving,
	}
	return server.Serve(ctx, listener)
}
