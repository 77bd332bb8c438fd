// Package agents is `aod agent`: wrapped agents and conversations with them; and `aod check-agent`. It must not know
// the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package agents

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/chat"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/complete"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/cmd/aod/units"
)

// Command is `aod agent`.
func Command(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run and check wrapped CLI agents",
		Long: `Wrapped agents are programs that there are, called as their agent.yaml says: kind: agent.
They run unmodified, in the sandbox that capsules have.`,
		Args: cli.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(runCommand(env), showCommand(env), checkCommand(env),
		chat.Command(env, "attach", "aod agent attach"), sessionsCommand(env))
	return cmd
}

func showCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show how a server calls an agent, and what goes on with it",
		Example: "  aod agent show reviewer\n  aod agent show reviewer --json | jq .agent",
		Args:    cli.Exactly(1, "the name of an agent"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return units.Show(ctx, env, server, args[0], asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

type agentRunFlags struct {
	run     runcmd.Flags
	message string
	session string
	begin   bool
}

func runCommand(env *cli.Env) *cobra.Command {
	var flags agentRunFlags
	cmd := &cobra.Command{
		Use:   "run DIR|NAME -m TEXT",
		Short: "Give an agent a message and print what it answers",
		Long: `Run a wrapped agent once, with a message, in a fresh container. stdout is its answer and
nothing else; stderr is progress and what the agent logs. Exit codes are those of aod run.`,
		Example: `  aod agent run ./shout -m "hello"
  aod agent run ./reviewer -m "what is wrong here?" --file main.go
  git diff | aod agent run ./reviewer -m -
  aod agent run ./fixer -m "fix the tests" --workspace ~/src/shop
  aod agent run fixer --new-session -m "fix the tests" --workspace ~/src/shop
  aod agent run reviewer -m "hello" --server http://127.0.0.1:7070`,
		Args:              cli.Exactly(1, "one directory or name of an agent"),
		ValidArgsFunction: complete.Units(env),
		RunE: func(cmd *cobra.Command,
			args []string,
		) error {
			return runAgent(cmd.Context(), env, args[0], flags)
		},
	}
	set := cmd.Flags()
	set.StringVarP(&flags.message, "message", "m", "", "what the agent is asked; - is our own stdin")
	set.StringVar(&flags.session, "session", "", "the `ID` of a session on a server: the message is its next turn")
	set.BoolVar(&flags.begin, "new-session", false, "begin a session on the server with it; its id is told on stderr")
	set.StringArrayVarP(&flags.run.Input.Set, "set", "s", nil,
		"set another field of the input: `key=value`; may be repeated")
	set.StringArrayVarP(&flags.run.Input.File, "file", "f", nil, "give a file: `PATH`, or FIELD=PATH; may be repeated")
	set.StringVarP(&flags.run.Out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	set.DurationVar(&flags.run.Timeout, "timeout", 0,
		"stop the run after this time, e.g. 30s (default: the agent's, or 5m)")
	set.BoolVar(&flags.run.JSON, "json", false, "print the whole run record instead of the answer")
	set.BoolVar(&flags.run.Keep, "keep", false, "leave the run's directory for a look")
	flags.run.Given.Register(set)
	flags.run.Sources.Register(set)
	flags.run.RegisterReplace(set)
	flags.run.History.Register(set)
	flags.run.Project.Register(set)
	flags.run.Start.Register(set)
	for _, one := range []string{"env", "dir"} { // the program of a session may have started long ago
		cmd.MarkFlagsMutuallyExclusive("session", one)
		cmd.MarkFlagsMutuallyExclusive("new-session", one)
	}
	cmd.MarkFlagsMutuallyExclusive("session", "new-session")
	cmd.MarkFlagsMutuallyExclusive("session", "workspace") // a session has got its own when it began
	return cli.TellErrors(cmd)
}

func runAgent(ctx context.Context, env *cli.Env, name string, flags agentRunFlags) error {
	message, err := flags.read(env.In)
	if err != nil {
		return err
	}
	if flags.session != "" || flags.begin {
		return runTurn(ctx, env, name, message, flags)
	}
	return runcmd.Run(ctx, env, name, saying(flags.run, message))
}

// read returns the message.
func (f agentRunFlags) read(stdin io.Reader) (string, error) {
	if f.message == "" && len(f.run.Input.Set) == 0 {
		return "", fault.New(fault.Input, "there is no message").WithHint("give one with -m TEXT, or -m - for stdin")
	}
	if f.message != "-" {
		return f.message, nil
	}
	raw, err := runflags.ReadInput(stdin, "standard input")
	return string(raw), err
}

// saying makes a message, if there is one, the field of that name, and a file without a field one of
// files.
func saying(f runcmd.Flags, message string) runcmd.Flags {
	f.Text = true
	if message != "" {
		f.Input.Set = append([]string{"message=" + message}, f.Input.Set...)
	}
	for i, file := range f.Input.File {
		if !strings.Contains(file, "=") {
			f.Input.File[i] = "files=" + file
		}
	}
	return f
}

// checkedAgent is what check found.
type checkedAgent struct {
	Name     string          `json:"name"`
	Valid    bool            `json:"valid"`
	Program  string          `json:"program,omitempty"`
	Findings []fault.Finding `json:"findings"`
}

func checkCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Check an agent's directory, and find its program in its image",
		Long: `Report every problem of an agent's directory, build its image, and look its program up there
as the sandbox does. Nothing of the agent runs.`,
		Example:           "  aod agent check ./reviewer",
		Args:              cli.Exactly(1, "one directory of an agent"),
		ValidArgsFunction: complete.Units(env),
		RunE: func(cmd *cobra.Command,
			args []string,
		) error {
			return checkWrapped(cmd.Context(), env, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was found as a JSON object")
	return cmd
}

func checkWrapped(ctx context.Context, env *cli.Env, name string, asJSON bool) error {
	c, err := lookup.Load(env, name)
	if asJSON && fault.Is(err, fault.Capsule) {
		return tellInvalid(env, name, err)
	}
	if err != nil {
		return err
	}
	if c.Kind != capsule.KindAgent {
		return fault.New(fault.Input, "%q isn't a wrapped agent", c.Name).
			WithHint("`aod validate` checks units of every kind")
	}
	return cli.WithLocal(ctx, env, func(l *cli.Local) error {
		view := progress.New(env.Err, c.Name, env.Quiet)
		err := l.Containers.FindProgram(ctx, unit.Of(c), view.Event)
		view.Close()
		if asJSON && fault.Is(err, fault.Capsule) {
			return tellInvalid(env, c.Name, err)
		}
		if asJSON && err == nil {
			found := append([]fault.Finding{}, c.Warnings...)
			return env.Out.JSON(checkedAgent{c.Name, true, c.Wrapped.Command[0], found})
		}
		if err == nil {
			env.Out.Line("%s %s: %s is in its image", env.Out.Style(ui.Green, "✓"), ui.Printable(c.Name),
				ui.Printable(c.Wrapped.Command[0]))
		}
		return err
	})
}

// tellInvalid prints what is wrong with an agent as JSON.
func tellInvalid(env *cli.Env, name string, err error) error {
	public := fault.Public(err)
	found := append([]fault.Finding{}, public.Findings...)
	if len(found) == 0 {
		found = append(found, fault.Finding{Message: public.Msg, Hint: public.Hint})
	}
	return cli.Judge(env, checkedAgent{Name: name, Findings: found}, true, true, nil)
}
