package egress

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

type tunnelKey struct{}

// pass passes a request without TLS on, and its answer back. No redirect is followed: that is the
// program's to ask for.
func (t tunnel) pass(w http.ResponseWriter, r *http.Request) error {
	if len(r.Header.Values("Upgrade")) > 0 {
		r.Header.Del("Upgrade") // what comes behind an upgrade isn't HTTP
	}
	var failed error
	proxy := httputil.ReverseProxy{
		Transport:     t.session.door.transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // it would log addresses
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Host, p.Out.Host = t.to.String(), r.Host
		},
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode == http.StatusSwitchingProtocols {
				return fault.New(fault.Unavailable, "%s answers with another protocol", t.to)
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tunnelKey{}, t)))
	return t.refused(t.explained(failed))
}

// explained makes a fault of what the transport says.
func (t tunnel) explained(err error) error {
	var known *fault.Error
	var refused *refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &known):
		return known
	}
	return fault.Wrap(fault.Unavailable, err, "%s gave no answer", t.to).WithHint("try again later")
}

// dialTarget connects for the request in ctx.
func dialTarget(ctx context.Context, _, _ string) (net.Conn, error) {
	t, ok := ctx.Value(tunnelKey{}).(tunnel)
	if !ok {
		return nil, errors.New("dial without a target")
	}
	conn, err := t.session.door.dial(ctx, t.to)
	if err != nil {
		return nil, err
	}
	t.count.tunnels.Add(1)
	t.session.door.tunnels.Add(1)
	return &counted{Conn: conn, tunnel: t}, nil
}

// counted counts what goes over a connection, and gives it up when nothing does.
type counted struct {
	net.Conn
	tunnel tunnel
}

func (c *counted) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.tunnel.session.door.opts.Idle))
	n, err := c.Conn.Read(p)
	c.tunnel.received(n)
	return n, err
}

func (c *counted) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.tunnel.session.door.opts.Idle))
	n, err := c.Conn.Write(p)
	c.tunnel.sent(n)
	return n, err
}

var _ io.ReadWriteCloser = (*counted)(nil)
