package runs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/terminal"
)

// LogsCommand is `aod logs`.
func LogsCommand(env *cli.Env) *cobra.Command {
	var wanted api.LogFilter
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print what a run has written",
		Long: `Print what the program of a run has written to stdout and stderr, line by line. Without
--server the last runs of aod run on this machine are known, too.`,
		Example: "  aod logs --tail 20 -f 0198c0de-…",
		Args:    cli.Exactly(1, "the id of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wanted.Tail < 0 {
				return fault.New(fault.Input, "--tail must not be below zero")
			}
			return logs(cmd.Context(), env, args[0], wanted)
		},
	}
	cmd.Flags().BoolVarP(&wanted.Follow, "follow", "f", false, "go on until the run has ended")
	cmd.Flags().Int64Var(&wanted.Tail, "tail", 0, "begin with the last `LINES`; 0: with the first line")
	return cmd
}

func logs(ctx context.Context, env *cli.Env, id string, wanted api.LogFilter) error {
	_, server, err := runlist.Find(env, id)
	if err != nil {
		return err
	}
	log := runlist.History(env).Log(id, wanted)
	if server != nil {
		log = server.Runs.Log(ctx, id, wanted)
	}
	for entry, err := range log {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(env.Out, ui.Printable(terminal.Settled(entry.Text))); err != nil {
			return nil // the reader has gone
		}
	}
	return nil
}
