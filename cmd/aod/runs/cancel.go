package runs

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// CancelCommand is `aod cancel`.
func CancelCommand(env *cli.Env) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "cancel ID...",
		Short:   "End runs on a server",
		Long:    "Ask for the end of runs, and don't wait for it: aod logs -f ID does.",
		Example: "  aod cancel 0198c0de-… --reason \"wrong input\"\n  aod cancel $(aod ps --json | jq -r .id)",
		Args:    someRuns("`aod ps` lists the runs that go on"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return cancel(ctx, env, server, args, reason)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the run's record")
	return cmd
}

// someRuns wants the ids of runs, one at least. The hint says where they are.
func someRuns(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fault.New(fault.Input, "%s takes the ids of one run or more", cmd.CommandPath()).WithHint("%s", hint)
	}
}

func cancel(ctx context.Context, env *cli.Env, server *client.Client, ids []string, reason string) error {
	return eachRun(env, ids, func(id string) error {
		record, err := server.Runs.Cancel(ctx, id, reason)
		if fault.Is(err, fault.Conflict) { // it is over, which was what was wanted
			env.Note("%s: %s", ui.Printable(id), ui.Printable(fault.Public(err).Msg))
			return nil
		}
		if err == nil {
			env.Note("cancelling %s, a run of %s", record.ID, ui.Printable(record.Unit))
		}
		return err
	})
}

// eachRun tries every run and ends with the exit code of the first that failed.
func eachRun(env *cli.Env, ids []string, do func(id string) error) error {
	var code ui.ExitError
	for _, id := range ids {
		err := do(id)
		if err == nil {
			continue
		}
		env.Err.Fault(err)
		if code == 0 {
			code = ui.ExitError(fault.ExitCode(err))
		}
	}
	if code != 0 {
		return code
	}
	return nil
}

// SayCommand is `aod say`.
func SayCommand(env *cli.Env) *cobra.Command {
	var asData bool
	cmd := &cobra.Command{
		Use:   "say RUN TEXT",
		Short: "Say something to a run on a server",
		Long: `Say something to a run on a server that goes on. It is stored, and the run's program hears of
it when it asks for its messages: GET /messages, or aod.messages() in Python. What has not
begun yet finds it when it does. A program that never asks never hears of it.`,
		Example: "  aod say 0198c0de-… \"stop after this page\"\n  aod say 0198c0de-… --data '{\"pages\": 3}'",
		Args:    cli.Exactly(2, "the id of a run, and what to say"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return say(cmd.Context(), env, args[0], args[1], asData)
		},
	}
	cmd.Flags().BoolVar(&asData, "data", false, "TEXT is JSON, which the run gets as data")
	return cmd
}

func say(ctx context.Context, env *cli.Env, id, text string, asData bool) error {
	saying := api.Saying{Text: text}
	if asData {
		if !json.Valid([]byte(text)) {
			return fault.New(fault.Input, "TEXT isn't JSON, which --data says it is").
				WithHint("leave --data out to say it as text, or quote it for the shell: '{\"key\": 1}'")
		}
		saying = api.Saying{Data: json.RawMessage(text)}
	}
	server, err := env.Connect()
	if err != nil {
		return err
	}
	if _, err := server.Runs.Say(ctx, id, saying); err != nil {
		return err
	}
	env.Note("said to %s", id)
	return nil
}
