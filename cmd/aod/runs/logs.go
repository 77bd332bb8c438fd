package runs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/terminal"
)

// LogsCommand is `aod logs`.
func LogsCommand(env *cli.Env) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print what a run has written",
		Long: `Print what the program of a run has written to stdout and stderr, line by line. Without
--server the last runs of aod run on this machine are known, too.`,
		Example: "  aod logs -f 0198c0de-…",
		Args:    cli.Exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return logs(cmd.Context(), env, args[0], follow) },
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run has ended")
	return cmd
}

func logs(ctx context.Context, env *cli.Env, id string, follow bool) error {
	_, server, err := runlist.Find(env, id)
	if err != nil {
		return err
	}
	log := runlist.History(env).Log(id)
	if server != nil {
		log = server.Runs.Log(ctx, id, follow)
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
