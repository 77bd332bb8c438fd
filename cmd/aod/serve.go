package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/traces"
	"github.com/agent-on-demand/aod/runtime/docker"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve units over HTTP: queued, remembered, recovered",
		Long: `Serve units over HTTP until SIGTERM or Ctrl-C. What was accepted is stored before it is
acted on: a server that dies, however it does, is started again and goes on where it was.
At the end running runs get --grace to finish; what is left goes on with the next start.

The token that every request must bear is made at the first start (see token_file); the
commands ps, runs, logs, cancel, rerun, units and prune find it by themselves.

Providers of models, upstreams and secrets are those of --config and of the setting secrets:
--models, AOD_MODELS and keys in the environment are for commands that run units by themselves.`,
		Example: `  aod serve --units examples/capsules
  aod serve --config aod.yaml --listen 127.0.0.1:8080
  aod run --server http://127.0.0.1:7070 hello --set name=Ada`,
		Args: cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			read := func() (*config.Config, error) { return cli.LoadConfig(cmd) }
			c, err := read()
			if err != nil {
				return err
			}
			return a.serveLogged(cmd.Context(), c, read)
		},
	}
	cli.AddSettings(cmd)
	return cmd
}

// home is the server's part of the data directory.
func home(c *config.Config) string { return filepath.Join(c.Data, "server") }

// serveLogged runs the server until ctx ends. With a log of JSON, stderr has nothing else: also
// an error that ends the server is a line of the log.
func (a *app) serveLogged(ctx context.Context, c *config.Config, read func() (*config.Config, error)) error {
	logger := cli.NewLogger(a.env.Err, c.LogFormat, c.LogLevel)
	err := a.serve(ctx, serving{Config: c, home: home(c), logger: logger, from: sourcesOf(c)}, read)
	if err == nil || c.LogFormat != cli.LogJSON {
		return err
	}
	public := fault.Public(err)
	logger.Error("server ended", "kind", fault.KindOf(err).String(), "error", public.Msg, "hint", public.Hint)
	return ui.ExitError(fault.ExitCode(err))
}

// serve wires the server and runs it until ctx ends.
func (a *app) serve(ctx context.Context, s serving, read func() (*config.Config, error)) (err error) {
	boundMemory(s.logger)
	stopTracing, err := startTracing(ctx, versionText(), s.logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTracing(ctx)) }()
	s.traces = traces.New()
	s.logger = s.traces.Logger(s.logger)
	return a.withService(ctx, s, func(service *orchestrator.Service, settings *reloader) error {
		settings.read = read
		defer settings.onSignal(ctx)()
		return a.serveAPI(ctx, service, settings, s.logger)
	})
}

// serving is what a service is made of.
type serving struct {
	*config.Config
	home   string
	logger *slog.Logger
	from   runflags.Found
	traces *traces.Runs // nil: the logger doesn't tell them
}

// sourcesOf are those of a server: its file has them, and the environment's keys are no matter.
func sourcesOf(c *config.Config) runflags.Found {
	return runflags.FoundIn(c.Catalog(), c.Upstreams, secrets.Files{Dir: c.Secrets})
}

// withService calls do with a service that isn't started yet.
func (a *app) withService(
	ctx context.Context, s serving, do func(*orchestrator.Service, *reloader) error,
) (err error) {
	c, from, logger := s.Config, s.from, s.logger
	if err := leadsRuns(goruntime.GOOS); err != nil {
		return err
	}
	engine, err := a.engine(docker.Options{Unconfined: c.AllowUnconfined})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	gw, err := gateway.New(from.Catalog, gateway.Options{Key: from.Key, Logger: logger})
	if err != nil {
		return err
	}
	defer gw.Close()
	upstreams, err := upstream.New(from.Upstreams, upstream.Options{Key: from.Secrets.Read, Logger: logger})
	if err != nil {
		return err
	}
	defer upstreams.Close()
	if err := checkKeys(upstreams, from.Asked); err != nil {
		return err
	}
	of := containerOptions(c, from.Secrets, logger)
	of.Elsewhere = !c.LocalSandboxes
	containers := container.New(engine, of)
	if err := containers.Confined(ctx); fault.Is(err, fault.Unsupported) { // one that doesn't answer is waited for
		return err
	}
	settings := newReloader(c, logger)
	settings.gateway = gw
	opts, err := serviceOptions(settings, s.home)
	if err != nil {
		return err
	}
	door := egress.New(egress.Options{Private: c.EgressExceptions()})
	opts.Traces = s.traces
	opts.Kinds = kindsOver(containers, remote.New(remote.Options{Logger: logger, Secrets: from.Secrets, Door: door}))
	opts.Features = featuresOver(featureOptions{
		models: models.Models{
			Gateway: gw, Budget: budgetOf(c), Quotas: quotasOf(c), Transcript: c.ModelTranscripts,
		},
		upstreams: upstreams, door: door, pushes: pushesOf(c), mcpSessions: c.MCPSessions,
	})
	nodes, err := swarmOf(ctx, c, s.home, engine, logger)
	if err != nil {
		return err
	}
	opts.Features = append(opts.Features, workersOf(c, s.home, from.Secrets, engine, nodes))
	if settings.service, err = orchestrator.NewService(opts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, settings.service.Close()) }()
	return do(settings.service, settings)
}

// serveAPI serves the API of a service until ctx ends.
func (a *app) serveAPI(
	ctx context.Context, service *orchestrator.Service, settings *reloader, logger *slog.Logger,
) (err error) {
	c := settings.config()
	if err := removeAddress(home(c)); err != nil { // of one that died: it isn't this one's
		return err
	}
	api, stopWatching, err := a.newAPI(ctx, service, settings, logger)
	if err != nil {
		return err
	}
	defer stopWatching()
	listener, err := listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	e, err := openEntrance(c, listener, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	address := e.scheme() + "://" + reachable(listener.Addr())
	if err := writeAddress(home(c), address); err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, removeAddress(home(c)), e.close()) }()
	defer e.watch(ctx)()
	if err := service.Start(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	a.noteAddress(address, e, c)
	return serveUntilDone(ctx, service, api, e, listener, c)
}

// serveUntilDone shuts down in this order: no new runs are admitted, running ones get their
// time, and only then the API stops, so that waiting clients get an answer.
func serveUntilDone(
	ctx context.Context, service *orchestrator.Service, api served, e *entrance, listener net.Listener,
	c *config.Config,
) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- serveAll(serving, api, e, listener, c) }()
	var failure error
	select {
	case failure = <-served:
		served <- nil
	case <-ctx.Done():
	}
	shutdown(ctx, service, c)
	stopServing()
	return errors.Join(failure, <-served)
}

// shutdown gives the runs their time, with a context of its own.
func shutdown(ctx context.Context, service *orchestrator.Service, c *config.Config) {
	ctx = context.WithoutCancel(ctx)
	if !c.Drain {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Grace)
		defer cancel()
	}
	service.Shutdown(ctx, c.Drain)
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "nothing can listen on %s", address).
			WithHint("is another server there? --listen HOST:PORT chooses another address")
	}
	return listener, nil
}

// reachable is the server's address from this machine: a server that listens on every
// interface listens on the loopback too.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// writeAddress writes the server's address to a file, for commands that look for it.
func writeAddress(home, address string) error {
	if err := safefs.Replace(filepath.Join(home, "address"), []byte(address+"\n"),
		safefs.ReplaceOptions{Mode: 0o600, OneWriter: true}); err != nil {
		return fmt.Errorf("write address: %w", err)
	}
	return nil
}

func removeAddress(home string) error {
	if err := os.Remove(filepath.Join(home, "address")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
