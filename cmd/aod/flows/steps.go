package flows

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

func stateCommand(env *cli.Env) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "state RUN",
		Short: "Print what the nodes of a flow's run on a server have set so far",
		Long: `Print the state of a flow's run, also of one that goes on or has failed. With --out its files
are put there.`,
		Example: "  aod flow state 0198c0de-…\n  aod flow state 0198c0de-… --out state",
		Args:    cli.Exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return state(cmd.Context(), env, args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "directory for the files of the state")
	return cmd
}

func state(ctx context.Context, env *cli.Env, id, out string) error {
	_, server, err := runlist.Find(env, id)
	if err != nil {
		return err
	}
	if server == nil {
		return fault.New(fault.Unsupported, "%s was run here, and only a server shows the state of a run", id).
			WithHint("see aod flow steps %s", id)
	}
	state, err := server.Flows.State(ctx, id)
	if err != nil {
		return err
	}
	if err := env.Out.JSON(state.State); err != nil || out == "" {
		return err
	}
	files, err := server.Flows.Download(ctx, id, state.Files, out)
	for _, f := range files {
		env.Note("%s %s", ui.Printable(ui.RelativePath(f.Path)), ui.Bytes(f.SizeBytes))
	}
	return err
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
