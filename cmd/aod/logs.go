package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
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
	log, err := a.logOf(ctx, id, follow)
	if err != nil {
		return err
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

// logOf returns the log of a kept run, or of one on a server.
func (a *app) logOf(ctx context.Context, id string, follow bool) (iter.Seq2[api.LogEntry, error], error) {
	_, here, err := a.past(id)
	if err != nil {
		return nil, err
	}
	if here {
		return a.history().Log(id), nil
	}
	server, err := a.connectFor(id)
	if err != nil {
		return nil, err
	}
	return server.Log(ctx, id, follow), nil
}
