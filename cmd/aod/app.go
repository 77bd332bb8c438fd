package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/admin"
	"github.com/agent-on-demand/aod/cmd/aod/agents"
	"github.com/agent-on-demand/aod/cmd/aod/au"
	"github.com/agent-on-demand/aod/cmd/aod/capsules"
	"github.com/agent-on-demand/aod/cmd/aod/changes"
	"github.com/agent-on-demand/aod/cmd/aod/chat"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/complete"
	"github.com/agent-on-demand/aod/cmd/aod/describe"
	"github.com/agent-on-demand/aod/cmd/aod/doctor"
	"github.com/agent-on-demand/aod/cmd/aod/flows"
	"github.com/agent-on-demand/aod/cmd/aod/mcp"
	"github.com/agent-on-demand/aod/cmd/aod/models"
	"github.com/agent-on-demand/aod/cmd/aod/questions"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/runs"
	"github.com/agent-on-demand/aod/cmd/aod/schedules"
	"github.com/agent-on-demand/aod/cmd/aod/testcmd"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/cmd/aod/units"
	"github.com/agent-on-demand/aod/cmd/aod/validate"
	"github.com/agent-on-demand/aod/cmd/aod/webhooks"
	"github.com/agent-on-demand/aod/cmd/aod/workers"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
)

// app is one call of the program.
type app struct {
	env    *cli.Env
	engine func(docker.Options) (serverEngine, error) // of a server
}

// serverEngine is what a server has its containers on.
type serverEngine interface {
	container.Engine
	Carrier() runtime.ImageCarrier
	io.Closer
	// Nodes are those of the Swarm that the engine manages; it is an Unsupported fault of an engine that doesn't.
	Nodes(ctx context.Context) ([]runtime.Node, error)
}

func newApp(in io.Reader, out, err *ui.Output) *app {
	env := &cli.Env{In: in, Out: out, Err: err, Version: versionText()}
	env.Local = func(opts cli.LocalOptions, do func(*cli.Local) error) error { return openLocal(env, opts, do) }
	return &app{env, dockerEngine}
}

func dockerEngine(opts docker.Options) (serverEngine, error) {
	engine, err := docker.New(opts)
	if err != nil {
		return nil, err
	}
	return engine, nil
}

// run executes the command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var code ui.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, ui.ErrReaderGone):
		return 0 // whoever read it has had enough
	}
	a.env.Err.Fault(err)
	if cli.TellsErrors(cmd) {
		a.env.Out.FaultJSON(err)
	}
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
		Version:                    thisVersion().String(),
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       cli.KnownCommand,
		SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkGroups(cmd); err != nil {
				return err
			}
			return checkPlace(cmd, a.env)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.env.Out)
	root.SetErr(a.env.Err)
	root.SetIn(a.env.In)
	root.SetFlagErrorFunc(flagFault)
	flags := root.PersistentFlags()
	flags.StringVar(&a.env.Data, "data", cli.DefaultData(),
		"where runs live while they go on, and the last ones after it (AOD_DATA)")
	flags.StringArrayVar(&a.env.Units, "units", filepath.SplitList(os.Getenv("AOD_UNITS")),
		"a directory of capsules to find NAME in; may be repeated (AOD_UNITS)")
	flags.StringVar(&a.env.Server, "server", os.Getenv("AOD_SERVER"),
		"the server to use instead of this machine: http://HOST:PORT or https://… (AOD_SERVER)")
	flags.StringVar(&a.env.TokenFile, "token-file", os.Getenv("AOD_TOKEN_FILE"),
		"the file that holds that server's token (AOD_TOKEN_FILE)")
	flags.StringVar(&a.env.CA, "ca", os.Getenv("AOD_CA"),
		"the file of certificates that sign that server's, in the place of the system's (AOD_CA)")
	flags.StringVar(&a.env.Pin, "pin", os.Getenv("AOD_PIN"),
		"the pin of that server's key, as aod serve prints it: no other certificate is taken (AOD_PIN)")
	flags.BoolVarP(&a.env.Quiet, "quiet", "q", false, "no progress and no log lines, only results and errors")
	root.AddCommand(a.commands()...)
	complete.Commands(a.env, root)
	return root
}

// commands are those of the nouns. Add new ones here.
func (a *app) commands() []*cobra.Command {
	env := a.env
	return []*cobra.Command{
		capsules.InitCommand(env), capsules.BuildCommand(env), testcmd.New(env), capsules.ShellCommand(env),
		validate.Command(env), describe.Command(env), units.Command(env), schedules.Command(env),
		webhooks.Command(env), workers.Command(env),
		runcmd.Command(env), runcmd.RerunCommand(env),
		runs.Command(env), runs.PsCommand(env), runs.LogsCommand(env), runs.CancelCommand(env),
		runs.RemoveCommand(env), runs.SayCommand(env),
		questions.Command(env), questions.AnswerCommand(env),
		questions.ShortAnswerCommand(env, "approve"), questions.ShortAnswerCommand(env, "reject"),
		changes.DiffCommand(env), changes.ApplyCommand(env),
		au.Command(env), agents.Command(env), agents.CheckAgentCommand(env), flows.Command(env),
		chat.Command(env, "chat", "aod chat"), models.Command(env),
		mcp.Command(env, a.ownUnits),
		a.serveCommand(), workCommand(a), doctor.Command(env), versionCommand(env),
		admin.ConfigCommand(env), admin.PoolCommand(env), admin.PruneCommand(env), admin.BackupCommand(env),
		admin.AuditCommand(env), admin.UsageCommand(env),
		admin.RestoreCommand(env), admin.TokenCommand(env), admin.SecretCommand(env), admin.PageCommand(env),
		admin.WhoamiCommand(env), admin.LoginCommand(env), admin.LogoutCommand(env),
	}
}
