// Package runs is `aod ps`, `aod runs`, `aod logs`, `aod cancel` and `aod say`. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// Command is `aod runs`.
func Command(env *cli.Env) *cobra.Command {
	var flags listFlags
	var tree, models bool
	var call int64
	cmd := &cobra.Command{
		Use:   "runs [ID]",
		Short: "Show all that is known of a run, or list all runs",
		Long: `Show a run with its states, attempts, error, files, usage and times; with --json the
record as it is, with the input and the result. Without an ID list the runs: those of the
server, as aod ps -a, and without --server the last ones of aod run on this machine.`,
		Example: "  aod runs 0198c0de-…\n  aod runs 0198c0de-… --json | jq .output\n  aod runs 0198c0de-… --tree\n" +
			"  aod runs --unit hello",
		Args: cli.AtMostOne("the id of a run, or nothing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (models || call != 0) {
				return showModels(cmd.Context(), env, args[0], call, flags.json)
			}
			if len(args) == 1 {
				return showRun(cmd.Context(), env, args[0], flags.json, tree)
			}
			flags.all = true
			return listAll(cmd.Context(), env, flags)
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&models, "models", false, "list what it asked models: tokens, cost, time")
	cmd.Flags().Int64Var(&call, "model", 0, "print what it asked with its model call of this number, and the answer")
	cmd.Flags().BoolVar(&tree, "tree", false, "draw the tree of the runs that it called")
	return cmd
}

func showRun(ctx context.Context, env *cli.Env, id string, asJSON, tree bool) error {
	past, server, err := runlist.Find(env, id)
	if err != nil {
		return err
	}
	record := past.Record
	if server != nil {
		if record, err = server.Runs.Get(ctx, id); err != nil {
			return err
		}
	}
	if asJSON {
		return env.Out.JSON(record)
	}
	if tree {
		return progress.ShowTree(ctx, env, server, record)
	}
	page := runPage{page: ui.Page{Out: env.Out}, record: record}
	page.show()
	if server == nil {
		return nil
	}
	if err := page.artifacts(server.Artifacts.List(ctx, id)); err != nil {
		return err
	}
	return page.showPushes(ctx, server)
}
