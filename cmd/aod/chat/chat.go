// Package chat is `aod chat`: a conversation with an agent on a server, at a terminal or in a pipe. Its main path is
// Command, open, talk.loop, talk.turn and talk.follow; a view shows what comes, a reader has what is typed. It must not
// know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package chat

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// Command is `aod chat`, and under another name `aod agent attach`.
func Command(env *cli.Env, name, path string) *cobra.Command {
	var project runflags.Project
	cmd := &cobra.Command{
		Use:   name + " UNIT|ID",
		Short: "Talk with an agent on a server",
		Long: `Talk with an agent on a server: each line is a turn, and what the agent tells is shown as it comes.
With the name of a wrapped agent a new session begins, which works on a copy of --workspace; with that of
another unit that takes messages a conversation, in which it is given what was said before. Ctrl-C cancels
the turn, Ctrl-D leaves, and the id takes it up again. What the agent asks is answered by the next line: a number or an
answer. In a pipe stdout has what the agent says and nothing else, and the exit code is that of the first
turn that failed. A line that begins with / is a command:

` + commandHelp(),
		Example: "  " + path + " reviewer\n  " + path + " fixer --workspace ~/src/shop\n  " + path + " 0198c0de-…\n" +
			"  echo \"what changed?\" | " + path + " reviewer",
		Args: cli.Exactly(1, "the name of a unit on the server, or the id of a session or a conversation"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return open(ctx, env, server, args[0], project)
		}),
	}
	project.Register(cmd.Flags())
	return cmd
}

// open takes up a conversation, or begins one, and talks in it.
func open(ctx context.Context, env *cli.Env, server *client.Client, to string, project runflags.Project) error {
	with, isNew, err := find(ctx, env, server, to, project)
	if err != nil {
		return err
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	ctx = context.WithoutCancel(ctx) // an interrupt is the turn's
	in, env := newReader(env, interrupts)
	defer in.close()
	env.Note("%s with %s; Ctrl-D leaves it", with.name(), ui.Printable(with.unit))
	t := newTalk(env, server, with, in, interrupts)
	if !isNew {
		t.resume(ctx)
	}
	return t.loop(ctx)
}

// find returns whom an argument means: a session, a unit, or a conversation with one.
func find(
	ctx context.Context, env *cli.Env, server *client.Client, to string, project runflags.Project,
) (with *peer, isNew bool, err error) {
	session, err := server.Sessions.Get(ctx, to)
	if err == nil {
		if project.Dir != "" {
			err = fault.New(fault.Input,
				"--workspace can't be given here: the session goes on with the workspace that it has").
				WithHint("begin another one: name a unit, not a session")
		}
		return &peer{unit: session.Unit, session: session.ID}, false, err
	}
	if !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Input) {
		return nil, false, err
	}
	unit, err := server.Units.Get(ctx, to)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Input) {
		if with, found := takeUp(ctx, server, to); with != nil || found != nil {
			return with, false, found
		}
	}
	if err == nil && unit.Agent == nil && project.Dir == "" {
		with, err = begin(unit, "")
		return with, true, err
	}
	if err == nil {
		session, err = Begin(ctx, env, server, to, project)
	}
	err = lookup.OnlyHere(env, to, err, "is run by `aod agent run`, which uploads it")
	return &peer{unit: session.Unit, session: session.ID}, true, err
}

// Begin begins a session, with the project that is named.
func Begin(
	ctx context.Context, env *cli.Env, server *client.Client, unit string, project runflags.Project,
) (api.Session, error) {
	send, err := project.Send(ctx, env)
	if err != nil {
		return api.Session{}, err
	}
	return server.Sessions.Create(ctx, unit, send)
}

// Input is the input of a message.
func Input(text string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"message": text}) // texts can't fail
	return raw
}
