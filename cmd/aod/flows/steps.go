package flows

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/history"
	"github.com/agent-on-demand/aod/orchestrator/records"
)

func stateCommand(env *cli.Env) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "state RUN",
		Short: "Print what the nodes of a flow's run have set so far",
		Long: `Print the state of a flow's run, of a server or of aod run, also of one that goes on or has failed.
With --out its files are put there.`,
		Example: "  aod flow state 0198c0de-…\n  aod flow state 0198c0de-… --out state",
		Args:    cli.Exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return state(cmd.Context(), env, args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "directory for the files of the state")
	return cmd
}

func state(ctx context.Context, env *cli.Env, id, out string) error {
	past, server, err := runlist.Find(env, id)
	if err != nil {
		return err
	}
	state, err := stateOf(ctx, env, server, id, past)
	if err != nil {
		return err
	}
	if err := env.Out.JSON(state.State); err != nil || out == "" {
		return err
	}
	var files []api.File
	if server != nil {
		files, err = server.Flows.Download(ctx, id, state.Files, out)
	} else {
		files, err = runlist.History(env).SaveState(id, state.Files, out)
	}
	for _, f := range files {
		env.Note("%s %s", ui.Printable(ui.RelativePath(f.Path)), ui.Bytes(f.SizeBytes))
	}
	return err
}

// stateOf returns the state of a run of a server, or of one of this machine.
func stateOf(
	ctx context.Context, env *cli.Env, server *client.Client, id string, past history.Past,
) (api.FlowState, error) {
	if server != nil {
		return server.Flows.State(ctx, id)
	}
	kept := runlist.History(env)
	walk, err := kept.Walk(id)
	if err != nil {
		return api.FlowState{}, err
	}
	return records.StateOf(kept.StateDir(id), past.Record.Input, walk.Steps)
}

func stepsCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "steps RUN",
		Short:   "List the steps of a flow's run",
		Example: "  aod flow steps 0198c0de-…\n  aod flow steps 0198c0de-… --json | jq 'select(.state == \"failed\")'",
		Args:    cli.Exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return steps(cmd.Context(), env, args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each step as a JSON object on a line")
	return cmd
}

func steps(ctx context.Context, env *cli.Env, id string, asJSON bool) error {
	_, server, err := runlist.Find(env, id)
	if err != nil {
		return err
	}
	list, err := stepsOf(ctx, env, server, id)
	if err != nil {
		return err
	}
	titles := []string{"NODE", "TRY", "STATE", "ACTION", "TOOK", "RUN", "ERROR"}
	return cli.Table(env, list, asJSON, "", titles, func(step api.Step) []string {
		return []string{
			step.Address, fmt.Sprint(step.Try), stepStateText(step), step.Action, tookText(step), step.Run,
			stepErrorText(step),
		}
	})
}

func stepStateText(s api.Step) string {
	if s.Cached {
		return string(s.State) + " (taken again)"
	}
	return string(s.State)
}

func tookText(s api.Step) string {
	if s.Ended == nil {
		return ""
	}
	return ui.RoundTime(s.Ended.Sub(s.Began)).String()
}

func stepErrorText(s api.Step) string {
	if s.Error == nil {
		return ""
	}
	return s.Error.Kind + ": " + s.Error.Message
}
