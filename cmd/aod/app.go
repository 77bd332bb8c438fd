package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
)

// app is one call of the program: its streams and its global flags.
type app struct {
	stdin  io.Reader
	stdout *output
	stderr *output

	data  string   // --data
	units []string // --units
	quiet bool     // --quiet

	patches *container.Patches // of --watch; else nil

	server    string // --server
	tokenFile string // --token-file
}

// exitError ends the program with an exit code of its own. The message has been printed
// already.
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
	case errors.Is(err, errReaderGone):
		return 0 // whoever read it has had enough
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
		PersistentPreRunE:          func(cmd *cobra.Command, _ []string) error { return a.checkPlace(cmd) },
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetIn(a.stdin)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.New(fault.Input, "%s", err).WithHint("see %s --help", cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.data, "data", defaultData(),
		"where runs live while they go on, and the last ones after it (AOD_DATA)")
	flags.StringArrayVar(&a.units, "units", filepath.SplitList(os.Getenv("AOD_UNITS")),
		"a directory of capsules to find NAME in; may be repeated (AOD_UNITS)")
	flags.StringVar(&a.server, "server", os.Getenv("AOD_SERVER"),
		"the server to use instead of this machine: http://HOST:PORT (AOD_SERVER)")
	flags.StringVar(&a.tokenFile, "token-file", os.Getenv("AOD_TOKEN_FILE"),
		"the file that holds that server's token (AOD_TOKEN_FILE)")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no log lines, only results and errors")
	root.AddCommand(
		a.initCommand(), a.validateCommand(), a.buildCommand(), a.runCommand(), a.shellCommand(), a.auCommand(),
		a.agentCommand(), a.mcpCommand(), a.flowCommand(), a.questionsCommand(), a.diffCommand(), a.applyCommand(),
		a.answerCommand(), a.shortAnswerCommand("approve"), a.shortAnswerCommand("reject"),
		a.testCommand(), a.serveCommand(), a.configCommand(), a.doctorCommand(), a.versionCommand(),
		a.psCommand(), a.runsCommand(), a.logsCommand(), a.cancelCommand(), a.sayCommand(), a.rerunCommand(),
		a.unitsCommand(), a.scheduleCommand(), a.describeCommand(), a.poolCommand(), a.modelsCommand(),
		a.pruneCommand(), a.backupCommand(), a.restoreCommand(),
		a.tokenCommand(), a.secretCommand(), a.checkAgentCommand(),
	)
	a.completeCommands(root)
	return root
}

// knownCommand refuses the rest of a command line that names no command.
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

// defaultData is the default data directory of a user (XDG Base Directory).
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

// exactly accepts that many arguments, and names them if there are more or fewer.
func exactly(n int, what string) cobra.PositionalArgs { return between(n, n, what) }

func between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if least <= len(args) && len(args) <= most {
			return nil
		}
		return fault.New(fault.Input, "%s takes %s", cmd.CommandPath(), what).
			WithHint("see %s --help", cmd.CommandPath())
	}
}

// note prints a remark, unless --quiet.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.stderr.line(format, args...)
	}
}
