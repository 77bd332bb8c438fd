// Package mcp is `aod mcp`: units as tools of clients, and sealed servers of MCP. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package mcp

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/protocol/mcp"
)

// Command is `aod mcp`.
func Command(env *cli.Env, own OwnUnits) *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Give units as tools to clients of the Model Context Protocol",
		Long: `Speak the Model Context Protocol (MCP) on stdin and stdout, for a client that starts this
command: an editor, a desktop client, another agent. Every unit is a tool, and a call is a run.

The units are those of the server that runs on the data directory, or of --server; with --units
(or --code) the command runs those of a directory by itself, for as long as its client is there, and has
models, upstreams and secrets for them as aod run has. A server has the same tools at /mcp for
clients that speak HTTP.`,
		Example: `  aod mcp --units ~/capsules
  aod mcp --units ~/capsules --files ~/papers --out ~/results
  aod mcp --units ~/capsules --models ~/models.yaml
  aod mcp --code
  aod mcp config claude --units ~/capsules`,
		Args: cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error { return serveMCP(env, cmd, flags, own) },
	}
	flags.register(cmd)
	cmd.AddCommand(configCommand(env), runCommand(env), callCommand(env))
	return cmd
}

// mcpFlags say what a client gets.
type mcpFlags struct {
	units      []string
	code       bool // a setting, too: see config.Load
	files, out string
	sources    runflags.Sources // of units that the command runs by itself
}

func (f *mcpFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.units, "unit", nil, "only this unit; may be repeated")
	cmd.Flags().BoolVar(&f.code, "code", false, "offer aod.code, which runs programs in Python; runs units here")
	cmd.Flags().StringVar(&f.files, "files", "", "a directory whose files may be given to tools by their paths")
	cmd.Flags().StringVar(&f.out, "out", "", "a directory that gets the files of results")
	f.sources.RegisterFiles(cmd.Flags())
}

// options returns the flags as options, with whole paths.
func (f *mcpFlags) options() (opts mcp.Options, err error) {
	opts.Units = f.units
	if opts.Files, err = wholePath(f.files); err != nil {
		return opts, err
	}
	if opts.Out, err = wholePath(f.out); err != nil {
		return opts, err
	}
	if info, err := os.Stat(opts.Files); opts.Files != "" && (err != nil || !info.IsDir()) {
		return opts, fault.Wrap(fault.Input, err, "--files names no directory: %q", f.files).
			WithHint("name a directory of this machine whose files may be given to tools")
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

func serveMCP(env *cli.Env, cmd *cobra.Command, flags mcpFlags, own OwnUnits) error {
	opts, err := flags.options()
	if err != nil {
		return err
	}
	opts.Version, opts.Logger = env.Version, cli.NewLogger(env.Err, "text", "warn")
	here := cmd.Flags().Changed("units") || flags.code
	if here && cmd.Flags().Changed("server") {
		return fault.New(fault.Input,
			"with --units or --code this command runs units here, and --server names another place").
			WithHint("give one of them; a server has aod.code with the setting code: true")
	}
	if !here {
		server, err := env.Connect()
		if err == nil {
			err = flags.sources.RefuseOnServer()
		}
		if err == nil {
			opts.URL = server.Server()
			return speakMCP(cmd.Context(), env, mcpRemote{server}, opts)
		}
		if err := withoutServer(env, err); err != nil {
			return err
		}
	}
	return own(cmd, flags.sources, opts.Logger, func(ctx context.Context, units mcp.Service) error {
		return speakMCP(ctx, env, units, opts)
	})
}

// withoutServer is nil where the command runs the units of the environment, since it reached no server.
func withoutServer(env *cli.Env, err error) error {
	if env.Server != "" || !fault.Is(err, fault.Unavailable) {
		return err
	}
	if len(env.Units) > 0 {
		return nil
	}
	return fault.New(fault.Unavailable, "no server runs on the data directory %q", env.Data).
		WithHint("start one with `aod serve`, name one with --server URL, or give the directory of units with " +
			"--units DIR")
}

// OwnUnits calls do with a service over this command's own units.
type OwnUnits func(
	cmd *cobra.Command, from runflags.Sources, logger *slog.Logger, do func(context.Context, mcp.Service) error,
) error

// speakMCP serves the client at stdin and stdout, until it goes or ctx ends.
func speakMCP(ctx context.Context, env *cli.Env, svc mcp.Service, opts mcp.Options) error {
	ctx, stop := whileRead(ctx, env.Out)
	defer stop()
	server := mcp.New(svc, opts)
	if err := server.Refresh(ctx); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cli.Beside(cancel, func() { server.Watch(watching) })()
	err := server.ServeStdio(ctx, env.In, env.Out)
	if errors.Is(err, ui.ErrReaderGone) {
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
		if gone, err := ui.ReaderGone(fd, readerPause); gone || err != nil {
			return gone && err == nil
		}
	}
}

// whileRead returns a context that ends when the reader of a pipe has gone, or nobody could tell: a
// client that was killed says nothing.
func whileRead(ctx context.Context, out *ui.Output) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, cli.Beside(cancel, func() {
		defer cancel()
		waitUnread(out.FD, ctx.Done())
	})
}
