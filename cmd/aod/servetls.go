package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Protocols above TLS, by their names in ALPN.
const (
	http1 = "http/1.1"
	http2 = "h2"
)

// entrance is how the server's listeners are reached, and what commands of this machine are told of them.
type entrance struct {
	home    string
	listens []string
	keeper  *certs.Keeper // nil: there is no TLS
	said    certs.State   // what the log has been told of it last
	logger  *slog.Logger
}

// openEntrance reads or makes the server's certificate, where it has one, and writes what this machine is told.
func openEntrance(c *config.Config, listener net.Listener, logger *slog.Logger) (*entrance, error) {
	e := &entrance{home: home(c), listens: []string{listener.Addr().String()}, logger: logger}
	if c.A2A.Enabled && c.A2A.GRPC != "" {
		e.listens = append(e.listens, c.A2A.GRPC)
	}
	pair := certs.Pair{Cert: c.Certificate.Cert, Key: c.Certificate.Key}
	switch c.TLS {
	case config.TLSOff:
		return e, e.write(certs.State{})
	case config.TLSSelf:
		var err error
		if pair, err = certs.Self(filepath.Join(e.home, "tls"), ownNames(c)); err != nil {
			return nil, err
		}
	}
	var err error
	e.keeper, err = certs.Open(pair, e.told)
	return e, err
}

// ownNames are those by which a server without another certificate is reached.
func ownNames(c *config.Config) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil && config.IsHost(name) {
		names = append(names, name)
	}
	for _, address := range []string{c.Listen, c.A2A.GRPC} {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
			names = append(names, host)
		}
	}
	names = append(names, c.Hosts...)
	slices.Sort(names)
	return slices.Compact(names)
}

// scheme is that of the server's addresses.
func (e *entrance) scheme() string {
	if e.keeper == nil {
		return "http"
	}
	return "https"
}

// behind returns a listener whose connections speak TLS, where the server does, and above it one of the protocols.
func (e *entrance) behind(listener net.Listener, protocols ...string) net.Listener {
	if e.keeper == nil {
		return listener
	}
	return tls.NewListener(listener, e.keeper.Config(protocols...))
}

// watch has a certificate read again when its files change, until stop is called.
func (e *entrance) watch(ctx context.Context) (stop func()) {
	if e.keeper == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the API goes on for a while when the server ends
	return cli.Beside(cancel, func() { e.keeper.Watch(ctx) })
}

// told hears what happens to the certificate.
func (e *entrance) told(now certs.State) {
	if err := e.write(now); err != nil {
		e.logger.Error("commands of this machine don't know the certificate", "error", err)
	}
	before := e.said
	e.said = now
	switch {
	case now.Problem != nil:
		e.logger.Warn("the new certificate can't be used, the old one stays", "error", now.Problem.Msg,
			"hint", now.Problem.Hint)
	case before.Problem != nil || !before.Until.Equal(now.Until) || before.Pins[0] != now.Pins[0]:
		e.logger.Info("certificate in use", "pin", string(now.Pins[0]), "valid_until", now.Until)
	}
}

func (e *entrance) write(now certs.State) error {
	serving := cli.Serving{Listens: e.listens, Pins: now.Pins}
	if !now.Until.IsZero() {
		serving.Until = &now.Until
	}
	if now.Problem != nil {
		serving.Problem, serving.Hint = now.Problem.Msg, now.Problem.Hint
	}
	raw, err := json.Marshal(serving)
	if err != nil {
		return fmt.Errorf("write what is served: %w", err)
	}
	if err := safefs.Replace(cli.ServingFile(e.home), raw,
		safefs.ReplaceOptions{Mode: 0o600, OneWriter: true}); err != nil {
		return fmt.Errorf("write what is served: %w", err)
	}
	return nil
}

// close takes back what this machine was told.
func (e *entrance) close() error { return safefs.IgnoreMissing(os.Remove(cli.ServingFile(e.home))) }

// noteAddress tells the server's address and pin, and who can reach it.
func (a *app) noteAddress(address string, e *entrance, c *config.Config) {
	public, pin := cli.Serving{Listens: e.listens}.Public(), ""
	if e.keeper != nil {
		pin = string(e.keeper.State().Pins[0])
	}
	if c.LogFormat == cli.LogJSON {
		e.logger.Info("serving", "address", address, "listens", e.listens[0])
		if len(public) > 0 && pin == "" {
			e.logger.Warn("other machines are served without tls", "listens", public, "hint", cli.NoTLS)
		}
		return
	}
	a.env.Note("aod serves on %s", address)
	if c.TLS == config.TLSSelf {
		a.env.Note("it has a certificate of its own: elsewhere, use --pin %s", pin)
	}
	switch at := strings.Join(public, " and "); {
	case len(public) == 0:
	case pin != "":
		a.env.Note("other machines can reach it at %s", at)
	default:
		a.env.Note("warning: other machines can reach it at %s without TLS, and %s", at, cli.NoTLS)
	}
}
