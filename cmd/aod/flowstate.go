package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) flowStateCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "state RUN",
		Short: "Print what the nodes of a flow's run on a server have set so far",
		Long: `Print the state of a flow's run, also of one that goes on or has failed. With --out its files
are put there.`,
		Example: "  aod flow state 0198c0de-…\n  aod flow state 0198c0de-… --out state",
		Args:    exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.flowState(cmd.Context(), args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "directory for the files of the state")
	return cmd
}

func (a *app) flowState(ctx context.Context, id, out string) error {
	server, err := a.connectFor(id)
	if err != nil {
		return err
	}
	state, err := server.FlowState(ctx, id)
	if err != nil {
		return err
	}
	if err := a.stdout.json(state.State); err != nil || out == "" {
		return err
	}
	files, err := server.DownloadState(ctx, id, state.Files, out)
	for _, f := range files {
		a.note("%s %s", printable(relative(f.Path)), bytesText(f.SizeBytes))
	}
	return err
}
