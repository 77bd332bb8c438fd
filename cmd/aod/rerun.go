package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
)

func (a *app) rerunCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "rerun ID",
		Short: "Run once more what aod run or a server has run",
		Long: `Start a new run with the input and the files of one that has ended, and follow it to
its end as aod run does: stdout is the result, and the exit code is the run's. The unit is
run as it is now. Without --server the last runs of aod run on this machine are known, too.`,
		Example: "  aod rerun 0198c0de-…\n  aod rerun 0198c0de-… --detach",
		Args:    exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.rerun(cmd.Context(), args[0], flags) },
	}
	cmd.Flags().StringVarP(&flags.out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the whole run record instead of the result")
	cmd.Flags().BoolVar(&flags.detach, "detach", false, "on a server: print the new run's id and don't wait for it")
	flags.history.register(cmd.Flags())
	return cmd
}

func (a *app) rerun(ctx context.Context, id string, flags runFlags) error {
	past, here, err := a.past(id)
	if err != nil {
		return err
	}
	if here {
		return a.rerunHere(ctx, past, flags)
	}
	server, err := a.connectFor(id)
	if err != nil {
		return err
	}
	return a.start(ctx, server, flags, func(ctx context.Context) (api.Record, error) {
		return server.Rerun(ctx, id)
	})
}
