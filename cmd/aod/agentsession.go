package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
)

// runTurn is `aod agent run` in a session on a server.
func (a *app) runTurn(ctx context.Context, unit, message string, flags agentRunFlags) error {
	server, err := a.connect()
	if err != nil {
		return err
	}
	if flags.begin {
		begun, err := a.beginSession(ctx, server, unit, flags.project)
		if err != nil {
			return err
		}
		flags.session = begun.ID
		a.note("session %s", begun.ID)
	}
	submission := client.Submission{
		Unit: unit, Session: flags.session, Input: messageInput(message),
		Timeout: flags.timeout,
	}
	for _, path := range flags.input.file {
		submission.Files = append(submission.Files, client.InputFile{Field: "files", Path: path})
	}
	record, err := server.Submit(ctx, submission)
	if err != nil {
		return err
	}
	if record, err = a.ended(ctx, server, record.ID, unit); err != nil {
		return err
	}
	flags.text = true
	return a.report(record, "", flags.form(), nil)
}

// beginSession begins a session, with the project that is named.
func (a *app) beginSession(
	ctx context.Context, server *client.Client, unit string, project projectFlags,
) (api.Session, error) {
	send, err := project.send(ctx, a)
	if err != nil {
		return api.Session{}, err
	}
	return server.NewSession(ctx, unit, send)
}

// messageInput is the input of a message.
func messageInput(text string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"message": text}) // texts can't fail
	return raw
}

func (a *app) agentSessionsCommand() *cobra.Command {
	var unit string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions with agents on a server",
		Long:  "List the sessions with agents on a server, the newest first.",
		Example: "  aod agent sessions\n  aod agent sessions --unit reviewer --all\n" +
			"  aod agent sessions close 0198c0de-…",
		Args: exactly(0, "no arguments"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, _ []string) error {
			sessions := server.Sessions(ctx, client.SessionFilter{Unit: unit, Open: !all})
			_, err := listed(a, sessions, asJSON, "there are no sessions", a.showSession)
			return err
		}),
	}
	cmd.Flags().StringVar(&unit, "unit", "", "only those of this unit")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "those that are closed, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each session as a JSON object on a line")
	cmd.AddCommand(a.agentCloseCommand())
	return cmd
}

func (a *app) showSession(s api.Session) {
	state := string(s.State)
	if s.Live {
		state += ", live"
	}
	if s.Reason != "" {
		state += ": " + printable(s.Reason)
	}
	a.stdout.line("%s  %s  %s, used %s ago  %s", printable(s.ID), printable(s.Unit), plural(s.Turns, "turn"),
		ageText(time.Since(s.UsedAt)), state)
}

func (a *app) agentCloseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close ID",
		Short: "End a session with an agent on a server",
		Long: "End a session with an agent on a server: its turns are cancelled, its container and its files go.\n" +
			"Its runs stay.",
		Example: "  aod agent sessions close 0198c0de-…",
		Args:    exactly(1, "the id of a session"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			session, err := server.CloseSession(ctx, args[0])
			if err == nil {
				a.note("session %s of %s is closed", session.ID, printable(session.Unit))
			}
			return err
		}),
	}
}

func (a *app) agentAttachCommand() *cobra.Command {
	var project projectFlags
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
		Args: exactly(1, "the name of a unit on the server, or the id of a session"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			return a.agentAttach(ctx, server, args[0], project)
		}),
	}
	project.register(cmd.Flags())
	return cmd
}

func (a *app) agentAttach(ctx context.Context, server *client.Client, to string, project projectFlags) error {
	session, err := server.Session(ctx, to)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Input) {
		session, err = a.beginSession(ctx, server, to, project)
	} else if err == nil && project.dir != "" {
		err = fault.New(fault.Input, "the session goes on with the workspace that it has").
			WithHint("begin another one: name a unit, not a session")
	}
	if err != nil {
		return err
	}
	a.note("session %s with %s; Ctrl-D leaves it", session.ID, printable(session.Unit))
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	t := attached{app: a, server: server, session: session.ID, interrupts: interrupts}
	return t.talk(context.WithoutCancel(ctx), linesOf(a.stdin)) // an interrupt is the turn's
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
	*app
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
		_, err := t.server.CloseSession(ctx, t.session)
		return true, err
	case line == "/diff":
		if err := t.diff(ctx, t.session, diffFlags{}); err != nil {
			t.stderr.fault(err)
		}
		return false, nil
	case strings.HasPrefix(line, "/"):
		return false, t.command(ctx, line)
	}
	record, err := t.server.Submit(ctx, client.Submission{Session: t.session, Input: messageInput(line)})
	if err != nil {
		t.stderr.fault(err)
		return fault.Is(err, fault.Conflict), nil
	}
	t.run = record.ID
	return false, t.follow(ctx, lines)
}

// command answers what the turn asks.
func (t *attached) command(ctx context.Context, line string) error {
	name, action, _ := strings.Cut(line, " ")
	if name != "/answer" || action == "" {
		t.note("the commands are /answer ACTION, /diff and /close")
		return nil
	}
	if err := t.answer(ctx, t.server, t.run, strings.TrimSpace(action), answerFlags{}); err != nil {
		t.stderr.fault(err)
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
			if _, err := t.server.Cancel(ctx, t.run, "interrupted"); err != nil && !fault.Is(err, fault.Conflict) {
				return err
			}
		}
	}
}

// show prints what the agent tells in a turn, and its answer where it told none before.
func (t *attached) show(ctx context.Context) error {
	t.told = false
	for event, err := range t.server.Events(ctx, t.run, 0) {
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
			t.note("%s", printable(data.Message))
		}
	}
	record, err := t.server.Run(ctx, t.run)
	t.endLine()
	switch {
	case err != nil:
		return err
	case record.Error != nil:
		t.note("%s: %s", record.Outcome, printable(record.Error.Message))
	case !t.told:
		return t.printRun(record, asText)
	}
	return nil
}

// endLine ends the line of what was told.
func (t *attached) endLine() {
	if t.open {
		t.stdout.line("")
	}
	t.open = false
}

func (t *attached) showTold(told api.AgentEvent) {
	if told.Kind == "text" {
		t.told, t.open = true, true
		_, _ = t.stdout.Write([]byte(printable(told.Text))) // as every line
		return
	}
	t.endLine()
	if !t.quiet && told.Text != "" {
		t.stderr.line("%s", t.stderr.style(dim, told.Kind+": "+printable(told.Text)))
	}
}

func (t *attached) showAsked(ctx context.Context, asked api.QuestionEvent) {
	if asked.State != api.QuestionOpen {
		return
	}
	t.endLine()
	q, err := questionOf(ctx, t.server, asked.ID)
	if err == nil {
		t.stderr.line("%s", t.stderr.style(bold, printable(q.Text)))
		t.note("/answer with one of %s", strings.Join(q.Answers, ", "))
	}
}
