package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
)

func (a *app) agentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run and check wrapped CLI agents",
		Long: `Wrapped agents are programs that there are, called as their agent.yaml says: kind: agent.
They run unmodified, in the sandbox that capsules have.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.agentRunCommand(), a.agentCheckCommand(), a.agentAttachCommand(), a.agentSessionsCommand())
	return cmd
}

type agentRunFlags struct {
	runFlags
	message string
	session string
	begin   bool
}

func (a *app) agentRunCommand() *cobra.Command {
	var flags agentRunFlags
	cmd := &cobra.Command{
		Use:   "run DIR|NAME -m TEXT",
		Short: "Give an agent a message and print what it answers",
		Long: `Run a wrapped agent once, with a message, in a fresh container. stdout is its answer and
nothing else; stderr is progress and what the agent logs. Exit codes are those of aod run.`,
		Example: `  aod agent run ./shout -m "hello"
  aod agent run ./reviewer -m "what is wrong here?" --file main.go
  git diff | aod agent run ./reviewer -m -
  aod agent run ./fixer -m "mend the tests" --workspace ~/src/shop
  aod agent run fixer --new-session -m "mend the tests" --workspace ~/src/shop
  aod agent run reviewer -m "hello" --server http://127.0.0.1:7070`,
		Args:              exactly(1, "one directory or name of an agent"),
		ValidArgsFunction: a.offer(first(a.completeUnits), cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command,
			args []string,
		) error {
			return a.runAgent(cmd.Context(), args[0], flags)
		},
	}
	set := cmd.Flags()
	set.StringVarP(&flags.message, "message", "m", "", "what the agent is asked; - is our own stdin")
	set.StringVar(&flags.session, "session", "", "the `ID` of a session on a server: the message is its next turn")
	set.BoolVar(&flags.begin, "new-session", false, "begin a session on the server with it; its id is told on stderr")
	set.StringArrayVarP(&flags.input.set, "set", "s", nil,
		"set another field of the input: `key=value`; may be repeated")
	set.StringArrayVarP(&flags.input.file, "file", "f", nil, "give a file: `PATH`, or FIELD=PATH; may be repeated")
	set.StringVarP(&flags.out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	set.DurationVar(&flags.timeout, "timeout", 0,
		"stop the run after this time, e.g. 30s (default: the agent's, or 5m)")
	set.BoolVar(&flags.json, "json", false, "print the whole run record instead of the answer")
	set.BoolVar(&flags.keep, "keep", false, "leave the run's directory for a look")
	flags.given.register(set)
	flags.models.register(set)
	flags.history.register(set)
	flags.project.register(set)
	flags.start.register(set)
	for _, one := range []string{"env", "dir"} { // the program of a session may have started long ago
		cmd.MarkFlagsMutuallyExclusive("session", one)
		cmd.MarkFlagsMutuallyExclusive("new-session", one)
	}
	cmd.MarkFlagsMutuallyExclusive("session", "new-session")
	cmd.MarkFlagsMutuallyExclusive("session", "workspace") // a session has got its own when it began
	return cmd
}

// startFlags say how an agent's program starts.
type startFlags struct {
	env []string
	dir string
}

func (f *startFlags) register(set *pflag.FlagSet) {
	set.StringArrayVarP(&f.env, "env", "e", nil,
		"set a variable that the agent's caller_env names: `NAME=VALUE`; may be repeated")
	set.StringVar(&f.dir, "dir", "", "start in this directory below the agent's own")
}

func (f *startFlags) variables() (map[string]string, error) {
	var env map[string]string
	for _, one := range f.env {
		name, value, ok := strings.Cut(one, "=")
		if _, twice := env[name]; !ok || name == "" || twice {
			return nil, fault.New(fault.Input, "--env %s is not NAME=VALUE, or stands twice", fault.Quote(name))
		}
		if env == nil {
			env = map[string]string{}
		}
		env[name] = value
	}
	return env, nil
}

func (a *app) runAgent(ctx context.Context, name string, flags agentRunFlags) error {
	message, err := flags.read(a.stdin)
	if err != nil {
		return err
	}
	if flags.session != "" || flags.begin {
		return a.runTurn(ctx, name, message, flags)
	}
	given := flags.runFlags
	given.say(message)
	return a.runCapsule(ctx, name, given)
}

// read returns the message.
func (f agentRunFlags) read(stdin io.Reader) (string, error) {
	if f.message == "" && len(f.input.set) == 0 {
		return "", fault.New(fault.Input, "there is no message").WithHint("give one with -m TEXT, or -m - for stdin")
	}
	if f.message != "-" {
		return f.message, nil
	}
	raw, err := readInput(stdin, "standard input")
	return string(raw), err
}

// say makes a message, if there is one, the field of that name, and a file without a field one of
// files.
func (f *runFlags) say(message string) {
	f.text = true
	if message != "" {
		f.input.set = append([]string{"message=" + message}, f.input.set...)
	}
	for i, file := range f.input.file {
		if !strings.Contains(file, "=") {
			f.input.file[i] = "files=" + file
		}
	}
}

func (a *app) agentCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Check an agent's directory, and find its program in its image",
		Long: `Report every problem of an agent's directory, build its image, and look its program up there
as the sandbox does. Nothing of the agent runs.`,
		Example:           "  aod agent check ./reviewer",
		Args:              exactly(1, "one directory of an agent"),
		ValidArgsFunction: a.offer(first(a.completeUnits), cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command,
			args []string,
		) error {
			return a.checkWrapped(cmd.Context(), args[0])
		},
	}
	return cmd
}

func (a *app) checkWrapped(ctx context.Context, name string) error {
	c, err := a.load(name)
	if err != nil {
		return err
	}
	if c.Kind != capsule.KindAgent {
		return fault.New(fault.Input, "%q is no wrapped agent", c.Name).
			WithHint("`aod validate` checks units of every kind")
	}
	a.stderr.findings(c.Warnings)
	return a.withLocal(ctx, func(l *local) error {
		view := newView(a.stderr, c.Name, a.quiet)
		err := l.containers.FindProgram(ctx, unit.Of(c), view.event)
		view.close()
		if err == nil {
			a.stdout.line("%s %s: %s is in its image", a.stdout.style(green, "✓"), printable(c.Name),
				printable(c.Wrapped.Command[0]))
		}
		return err
	})
}
