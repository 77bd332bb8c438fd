package agents

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/changes"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/questions"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

func attachCommand(env *cli.Env) *cobra.Command {
	var project runflags.Project
	cmd := &cobra.Command{
		Use:   "attach UNIT|SESSION",
		Short: "Talk with an agent on a server, line by line",
		Long: `Talk with an agent on a server: each line is a turn, and what the agent tells is shown as it comes.
With the name of a unit a new session begins, which works on a copy of --workspace. Ctrl-C cancels the turn,
Ctrl-D leaves the session, which goes on. A line that begins with / is a command:

  /answer ACTION   answer what the agent asks
  /diff            what it has changed in its workspace so far
  /close           end the session`,
		Example: "  aod agent attach reviewer\n  aod agent attach fixer --workspace ~/src/shop\n" +
			"  aod agent attach 0198c0de-…",
		Args: cli.Exactly(1, "the name of a unit on the server, or the id of a session"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return attach(ctx, env, server, args[0], project)
		}),
	}
	project.Register(cmd.Flags())
	return cmd
}

func attach(ctx context.Context, env *cli.Env, server *client.Client, to string, project runflags.Project) error {
	session, err := server.Sessions.Get(ctx, to)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Input) {
		session, err = beginSession(ctx, env, server, to, project)
	} else if err == nil && project.Dir != "" {
		err = fault.New(fault.Input,
			"--workspace can't be given here: the session goes on with the workspace that it has").
			WithHint("begin another one: name a unit, not a session")
	}
	if err != nil {
		return err
	}
	env.Note("session %s with %s; Ctrl-D leaves it", session.ID, ui.Printable(session.Unit))
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	t := attached{env: env, server: server, session: session.ID, interrupts: interrupts}
	return t.talk(context.WithoutCancel(ctx), linesOf(env.In)) // an interrupt is the turn's
}

// linesOf reads lines as they come. The channel is closed at the end of the input.
func linesOf(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() { // it ends with the input, or the process
		defer close(lines)
		for in := bufio.NewScanner(r); in.Scan(); {
			lines <- in.Text()
		}
	}()
	return lines
}

// attached is a terminal's conversation.
type attached struct {
	env     *cli.Env
	server  *client.Client
	session string
	run     string   // the newest turn
	told    bool     // that has told some of its answer
	open    bool     // the line with that isn't ended
	typed   []string // while that went on: the next turns

	interrupts <-chan os.Signal
}

// talk makes a turn of each line, until there are no more or somebody interrupts between two.
func (t *attached) talk(ctx context.Context, lines <-chan string) error {
	for {
		line, more := t.next(lines)
		if !more {
			return nil
		}
		if over, err := t.take(ctx, line, lines); over || err != nil {
			return err
		}
	}
}

// next returns the next line; false at the end of the input, or when somebody interrupts.
func (t *attached) next(lines <-chan string) (line string, more bool) {
	if len(t.typed) > 0 {
		line, t.typed = t.typed[0], t.typed[1:]
		return line, true
	}
	select {
	case line, more = <-lines:
	case <-t.interrupts:
	}
	return strings.TrimSpace(line), more
}

// take acts on a line. A turn that fails is told, and doesn't end the conversation.
func (t *attached) take(ctx context.Context, line string, lines <-chan string) (over bool, err error) {
	switch {
	case line == "":
		return false, nil
	case line == "/close":
		_, err := t.server.Sessions.Close(ctx, t.session)
		return true, err
	case line == "/diff":
		if err := changes.Diff(ctx, t.env, t.session, changes.DiffFlags{}); err != nil {
			t.env.Err.Fault(err)
		}
		return false, nil
	case strings.HasPrefix(line, "/"):
		return false, t.command(ctx, line)
	}
	record, err := t.server.Runs.Submit(ctx, client.Submission{Session: t.session, Input: inputOf(line)})
	if err != nil {
		t.env.Err.Fault(err)
		return fault.Is(err, fault.Conflict), nil
	}
	t.run = record.ID
	return false, t.follow(ctx, lines)
}

// command answers what the turn asks.
func (t *attached) command(ctx context.Context, line string) error {
	name, action, _ := strings.Cut(line, " ")
	if name != "/answer" || action == "" {
		t.env.Note("the commands are /answer ACTION, /diff and /close")
		return nil
	}
	err := questions.Answer(ctx, t.env, t.server, t.run, strings.TrimSpace(action), questions.AnswerFlags{})
	if err != nil {
		t.env.Err.Fault(err)
	}
	return nil
}

// follow shows a turn to its end. Commands are taken meanwhile, and an interrupt cancels it.
func (t *attached) follow(ctx context.Context, lines <-chan string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	shown := make(chan error, 1)
	go func() { shown <- t.show(ctx) }()
	for {
		select {
		case err := <-shown:
			return err
		case line, more := <-lines:
			if !more {
				lines = nil // it is shown to its end
				continue
			}
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "/answer") {
				t.typed = append(t.typed, line)
				continue
			}
			if err := t.command(ctx, line); err != nil {
				return err
			}
		case <-t.interrupts:
			if _, err := t.server.Runs.Cancel(ctx, t.run, "interrupted"); err != nil && !fault.Is(err, fault.Conflict) {
				return err
			}
		}
	}
}

// show prints what the agent tells in a turn, and its answer where it told none before.
func (t *attached) show(ctx context.Context) error {
	t.told = false
	for event, err := range t.server.Runs.Events(ctx, t.run, 0) {
		if err != nil {
			return err
		}
		data, err := event.Decode()
		if err != nil {
			continue
		}
		switch data := data.(type) {
		case api.AgentEvent:
			t.showTold(data)
		case api.QuestionEvent:
			t.showAsked(ctx, data)
		case api.WarningEvent:
			t.env.Note("%s", ui.Printable(data.Message))
		}
	}
	record, err := t.server.Runs.Get(ctx, t.run)
	t.endLine()
	switch {
	case err != nil:
		return err
	case record.Error != nil:
		t.env.Note("%s: %s", record.Outcome, ui.Printable(record.Error.Message))
	case !t.told:
		return runcmd.PrintRun(t.env, record, runcmd.AsText)
	}
	return nil
}

// endLine ends the line of what was told.
func (t *attached) endLine() {
	if t.open {
		t.env.Out.Line("")
	}
	t.open = false
}

func (t *attached) showTold(told api.AgentEvent) {
	if told.Kind == "text" {
		t.told, t.open = true, true
		_, _ = t.env.Out.Write([]byte(ui.Printable(told.Text))) // as every line
		return
	}
	t.endLine()
	if !t.env.Quiet && told.Text != "" {
		t.env.Err.Line("%s", t.env.Err.Style(ui.Dim, told.Kind+": "+ui.Printable(told.Text)))
	}
}

func (t *attached) showAsked(ctx context.Context, asked api.QuestionEvent) {
	if asked.State != api.QuestionOpen {
		return
	}
	t.endLine()
	q, err := questions.Of(ctx, t.server, asked.ID)
	if err == nil {
		t.env.Err.Line("%s", t.env.Err.Style(ui.Bold, ui.Printable(q.Text)))
		t.env.Note("/answer with one of %s", strings.Join(q.Answers, ", "))
	}
}
