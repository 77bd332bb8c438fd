package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print what a run has written",
		Long: `Print what the program of a run has written to stdout and stderr, line by line. Without
--server the last runs of aod run on this machine are known, too.`,
		Example: "  aod logs -f 0198c0de-…",
		Args:    exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.logs(cmd.Context(), args[0], follow) },
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run has ended")
	return cmd
}

func (a *app) logs(ctx context.Context, id string, follow bool) error {
	_, server, err := a.past(id)
	if err != nil {
		return err
	}
	log := a.history().Log(id)
	if server != nil {
		log = server.Log(ctx, id, follow)
	}
	for entry, err := range log {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.stdout, printable(settled(entry.Text))); err != nil {
			return nil // the reader has gone
		}
	}
	return nil
}
