package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
)

func (a *app) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "cancel ID...",
		Short:   "End runs on a server",
		Long:    "Ask for the end of runs, and don't wait for it: aod logs -f ID does.",
		Example: "  aod cancel 0198c0de-… --reason \"wrong input\"\n  aod cancel $(aod ps --json | jq -r .id)",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return fault.New(fault.Input, "%s takes the ids of one run or more", cmd.CommandPath()).
				WithHint("`aod ps` lists the runs that go on")
		},
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			return a.cancel(ctx, server, args, reason)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the run's record")
	return cmd
}

// cancel tries every run and ends with the exit code of the first that failed.
func (a *app) cancel(ctx context.Context, server *client.Client, ids []string, reason string) error {
	var code exitError
	for _, id := range ids {
		record, err := server.Cancel(ctx, id, reason)
		if err == nil {
			a.note("cancelling %s, a run of %s", record.ID, printable(record.Unit))
			continue
		}
		a.stderr.fault(err)
		if code == 0 {
			code = exitError(fault.ExitCode(err))
		}
	}
	if code != 0 {
		return code
	}
	return nil
}
