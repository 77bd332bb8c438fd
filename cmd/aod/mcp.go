package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
)

func (a *app) mcpCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Give units as tools to clients of the Model Context Protocol",
		Long: `Speak the Model Context Protocol (MCP) on stdin and stdout, for a client that starts this
command: an editor, a desktop client, another agent. Every unit is a tool, and a call is a run.

The units are those of the server that runs on the data directory, or of --server; with --units
the command runs those of a directory by itself, for as long as its client is there. A server
has the same tools at /mcp for clients that speak HTTP.`,
		Example: `  aod mcp --units ~/capsules
  aod mcp --units ~/capsules --files ~/papers --out ~/results
  aod mcp config claude --units ~/capsules`,
		Args: exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveMCP(cmd, flags) },
	}
	flags.register(cmd)
	cmd.AddCommand(a.mcpConfigCommand(), a.mcpRunCommand(), a.mcpCallCommand())
	return cmd
}

// mcpFlags say what a client gets.
type mcpFlags struct {
	units      []string
	files, out string
}

func (f *mcpFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.units, "unit", nil, "only this unit; may be repeated")
	cmd.Flags().StringVar(&f.files, "files", "", "a directory whose files may be given to tools by their paths")
	cmd.Flags().StringVar(&f.out, "out", "", "a directory that gets the files of results")
}

// options returns the flags as options, with whole paths.
func (f *mcpFlags) options() (opts mcp.Options, err error) {
	opts.Units, opts.Version = f.units, versionText()
	if opts.Files, err = wholePath(f.files); err != nil {
		return opts, err
	}
	if opts.Out, err = wholePath(f.out); err != nil {
		return opts, err
	}
	if info, err := os.Stat(opts.Files); opts.Files != "" && (err != nil || !info.IsDir()) {
		return opts, fault.Wrap(fault.Input, err, "--files names no directory: %q", f.files)
	}
	return opts, nil
}

// wholePath is an absolute path; "" stays "".
func wholePath(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

func (a *app) serveMCP(cmd *cobra.Command, flags mcpFlags) error {
	opts, err := flags.options()
	if err != nil {
		return err
	}
	opts.Logger = newLogger(a.stderr, "text", "warn")
	if cmd.Flags().Changed("units") && cmd.Flags().Changed("server") {
		return fault.New(fault.Input, "with --units this command runs units here, and --server names another place").
			WithHint("give one of them")
	}
	if !cmd.Flags().Changed("units") {
		server, err := a.connect()
		if err == nil {
			opts.URL = server.Server()
			return a.speakMCP(cmd.Context(), mcpRemote{server}, opts)
		}
		if a.server != "" || !fault.Is(err, fault.Unavailable) {
			return err
		}
		if len(a.units) == 0 {
			return fault.New(fault.Unavailable, "no server runs on the data directory %q", a.data).
				WithHint("start one with `aod serve`, name one with --server URL, or give the directory of units " +
					"with --units DIR")
		}
	}
	return a.serveOwnMCP(cmd, opts)
}

// serveOwnMCP serves units by a service of its own.
func (a *app) serveOwnMCP(cmd *cobra.Command, opts mcp.Options) error {
	ctx := cmd.Context()
	c, err := config.Load(config.Options{Flags: cmd.Flags(), Getenv: os.Getenv, Data: defaultData()})
	if err != nil {
		return err
	}
	serve := func(service *orchestrator.Service) error {
		if err := service.Start(ctx); err != nil {
			return err
		}
		defer shutdown(ctx, service, c)
		return a.speakMCP(ctx, mcpService{service, c.UploadLimit}, opts)
	}
	for n := 1; ; n++ { // each client starts a command of its own
		held := false
		err := a.withService(ctx, c, filepath.Join(c.Data, "mcp", strconv.Itoa(n)), opts.Logger,
			func(service *orchestrator.Service) error {
				held = true
				return serve(service)
			})
		if held || !fault.Is(err, fault.Conflict) || n == maxClients {
			return err
		}
	}
}

// maxClients is how many of these commands have units of their own at a time.
const maxClients = 32

// speakMCP serves the client at stdin and stdout, until it goes or ctx ends.
func (a *app) speakMCP(ctx context.Context, svc mcp.Service, opts mcp.Options) error {
	ctx, stop := whileRead(ctx, a.stdout)
	defer stop()
	server := mcp.New(svc, opts)
	if err := server.Refresh(ctx); err != nil {
		return err
	}
	defer watchTools(ctx, server)()
	err := server.ServeStdio(ctx, a.stdin, a.stdout)
	if errors.Is(err, errReaderGone) {
		return nil
	}
	return err
}

// readerPause is how often it is looked whether the reader of stdout is there.
const readerPause = 200 * time.Millisecond

// waitUnread returns true when a pipe or socket has lost its reader, and false when done is
// closed or that can't be told.
func waitUnread(fd int, done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return false
		default:
		}
		if gone, err := readerGone(fd, readerPause); gone || err != nil {
			return gone && err == nil
		}
	}
}

// whileRead returns a context that ends when the reader of a pipe has gone, or nobody could tell: a
// client that was killed says nothing.
func whileRead(ctx context.Context, out *output) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, until(cancel, func() {
		defer cancel()
		waitUnread(out.fd, ctx.Done())
	})
}

// until does something beside its caller, who stops it and waits for its end.
func until(cancel func(), do func()) (stop func()) {
	var done sync.WaitGroup
	done.Go(do)
	return func() { cancel(); done.Wait() }
}
