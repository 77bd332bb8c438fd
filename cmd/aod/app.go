package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
)

// app is one call of the program: its streams and its global flags.
type app struct {
	stdin  io.Reader
	stdout *output
	stderr *output

	data  string   // --data
	units []string // --units
	quiet bool     // --quiet

	server    string // --server
	tokenFile string // --token-file
}

// exitError ends the program with a code of its own; everything is said already.
type exitError int

func (e exitError) Error() string { return "" }

// run executes the command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	a.stderr.fault(err)
	return fault.ExitCode(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "aod",
		Short: "Run agents as capsules: sealed, typed, on demand",
		Long: `aod runs agents as capsules: small programs in their own Docker image, with a typed
contract, each run in a fresh container without network, root or a writable system.`,
		Example: `  aod init my-capsule                   make a capsule that runs as it is
  aod run ./my-capsule --set text=hi    run it: the result is on stdout
  aod test ./my-capsule                 run its test cases
  aod doctor                            see whether this machine is ready`,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       knownCommand,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetIn(a.stdin)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.New(fault.Input, "%s", err).WithHint("see %s --help", cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.data, "data", defaultData(), "where runs live while they go on (AOD_DATA)")
	flags.StringArrayVar(&a.units, "units", filepath.SplitList(os.Getenv("AOD_UNITS")), "a directory of capsules to find NAME in; may be repeated (AOD_UNITS)")
	flags.StringVar(&a.server, "server", os.Getenv("AOD_SERVER"), "the server to use instead of this machine: http://HOST:PORT (AOD_SERVER)")
	flags.StringVar(&a.tokenFile, "token-file", os.Getenv("AOD_TOKEN_FILE"), "the file that holds that server's token (AOD_TOKEN_FILE)")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no log lines, only results and errors")
	root.AddCommand(
		a.initCommand(), a.validateCommand(), a.buildCommand(), a.runCommand(), a.auCommand(),
		a.testCommand(), a.serveCommand(), a.configCommand(), a.doctorCommand(), a.versionCommand(),
		a.psCommand(), a.runsCommand(), a.logsCommand(), a.cancelCommand(), a.rerunCommand(),
		a.unitsCommand(), a.poolCommand(), a.pruneCommand(), a.checkAgentCommand(),
	)
	return root
}

// knownCommand refuses what is left of a command line that names no command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fault.New(fault.Input, "there is no command %q", args[0]).WithHint("see %s --help", cmd.CommandPath())
	if known := cmd.SuggestionsFor(args[0]); len(known) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(known, " or "))
	}
	return err
}

// defaultData is where a user's programs keep their data (XDG Base Directory).
func defaultData() string {
	if dir := os.Getenv("AOD_DATA"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "aod")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "aod-data")
	}
	return filepath.Join(home, ".local", "share", "aod")
}

// exactly takes that many arguments and says what they are when there are others.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fault.New(fault.Input, "%s takes %s", cmd.CommandPath(), what).WithHint("see %s --help", cmd.CommandPath())
	}
}

// withOrchestrator calls do with an orchestrator over the local engine, after
// removing what dead processes left, and waits for its runs before it returns.
func (a *app) withOrchestrator(ctx context.Context, do func(*orchestrator.Orchestrator, runtime.Engine) error) (err error) {
	return a.withOptions(orchestrator.Options{DataDir: a.data}, func(o *orchestrator.Orchestrator, engine runtime.Engine) error {
		if err := a.sweep(ctx, o); err != nil {
			return err
		}
		return do(o, engine)
	})
}

// withUnit is withOrchestrator for runs of a unit. Where its agent is elsewhere no engine
// need answer: what dead processes left is removed then as far as it goes.
func (a *app) withUnit(ctx context.Context, c *capsule.Capsule, secrets map[string]string, do func(*orchestrator.Orchestrator) error) error {
	opts := orchestrator.Options{DataDir: a.data, SecretFiles: secrets}
	return a.withOptions(opts, func(o *orchestrator.Orchestrator, _ runtime.Engine) error {
		if err := a.sweepFor(ctx, o, c); err != nil {
			return err
		}
		return do(o)
	})
}

// sweepTime is how long a unit that needs no engine waits for one.
const sweepTime = 3 * time.Second

func (a *app) sweepFor(ctx context.Context, o *orchestrator.Orchestrator, c *capsule.Capsule) error {
	if c.Kind != capsule.KindRemote {
		return a.sweep(ctx, o)
	}
	brief, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	_ = a.sweep(brief, o) // the next command that needs an engine says what is wrong
	return ctx.Err()
}

func (a *app) withOptions(opts orchestrator.Options, do func(*orchestrator.Orchestrator, runtime.Engine) error) (err error) {
	engine, err := docker.New(docker.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	o, err := orchestrator.New(engine, opts)
	if err != nil {
		return err
	}
	defer o.Close()
	return do(o, engine)
}

// sweep removes what dead processes left.
func (a *app) sweep(ctx context.Context, o *orchestrator.Orchestrator) error {
	swept, err := o.Sweep(ctx)
	for _, id := range swept {
		a.note("cleaned up after run %s, whose process had died", id)
	}
	return err
}

// note tells of something in passing, unless --quiet.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.stderr.line(format, args...)
	}
}
