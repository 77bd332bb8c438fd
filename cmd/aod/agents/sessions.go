package agents

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/chat"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/cmd/aod/upload"
)

// runTurn is `aod agent run` in a session on a server.
func runTurn(ctx context.Context, env *cli.Env, unit, message string, flags agentRunFlags) error {
	if flags.session != "" && !lookup.IsName(unit) {
		return fault.New(fault.Input, "a session goes on with a unit of the server, and %q is a directory", unit).
			WithHint("name the unit with which the session began; `aod agent sessions` lists them")
	}
	if err := flags.run.RefuseOnServer(); err != nil {
		return err
	}
	server, err := env.Connect()
	if err != nil {
		return err
	}
	if unit, err = upload.Unit(ctx, env, server, unit, flags.run.Replace); err != nil {
		return err
	}
	if flags.begin {
		begun, err := chat.Begin(ctx, env, server, unit, flags.run.Project)
		if err != nil {
			return lookup.OnlyHere(env, unit, err, lookup.Uploads)
		}
		flags.session = begun.ID
		env.Note("session %s", begun.ID)
	}
	submission := client.Submission{
		Unit: unit, Session: flags.session, Input: chat.Input(message),
		Timeout: flags.run.Timeout,
	}
	for _, path := range flags.run.Input.File {
		submission.Files = append(submission.Files, client.InputFile{Field: "files", Path: path})
	}
	record, err := server.Runs.Submit(ctx, submission)
	if err != nil {
		return err
	}
	if record, err = runcmd.AwaitEnd(ctx, env, server, record.ID, unit); err != nil {
		return err
	}
	flags.run.Text = true
	return runcmd.Report(env, record, "", flags.run.Form(), nil)
}

func sessionsCommand(env *cli.Env) *cobra.Command {
	var unit string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions with agents on a server",
		Long:  "List the sessions with agents on a server, the newest first.",
		Example: "  aod agent sessions\n  aod agent sessions --unit reviewer --all\n" +
			"  aod agent sessions close 0198c0de-…",
		Args: cli.Exactly(0, "no arguments"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			sessions := server.Sessions.List(ctx, client.SessionFilter{Unit: unit, Open: !all})
			_, err := cli.List(env, sessions, asJSON, "there are no sessions",
				func(s api.Session) { showSession(env, s) })
			return err
		}),
	}
	cmd.Flags().StringVar(&unit, "unit", "", "only those of this unit")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "those that are closed, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each session as a JSON object on a line")
	cmd.AddCommand(closeCommand(env))
	return cmd
}

func showSession(env *cli.Env, s api.Session) {
	state := string(s.State)
	if s.Live {
		state += ", live"
	}
	if s.Reason != "" {
		state += ": " + ui.Printable(s.Reason)
	}
	env.Out.Line("%s  %s  %s, used %s ago  %s", ui.Printable(s.ID), ui.Printable(s.Unit), ui.Plural(s.Turns, "turn"),
		ui.Age(time.Since(s.UsedAt)), state)
}

func closeCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "close ID",
		Short: "End a session with an agent on a server",
		Long: "End a session with an agent on a server: its turns are cancelled, its container and its files go.\n" +
			"Its runs stay.",
		Example: "  aod agent sessions close 0198c0de-…",
		Args:    cli.Exactly(1, "the id of a session"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			session, err := server.Sessions.Close(ctx, args[0])
			if err == nil {
				env.Note("session %s of %s is closed", session.ID, ui.Printable(session.Unit))
			}
			return err
		}),
	}
}
