package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// RemoveCommand is `aod rm`.
func RemoveCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID...",
		Short: "Remove runs from a server, for good",
		Long: `Remove runs that ended, with all that they called: records, inputs, files, logs and transcripts. What
was used and the audit stay. It takes a token with the scope admin; aod prune removes runs by their
age or size.`,
		Example: "  aod rm 0198c0de-…",
		Args:    someRuns("`aod ps -a` lists runs"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return eachRun(env, args, func(id string) error {
				removed, err := server.Runs.Remove(ctx, id)
				if err != nil {
					return err
				}
				env.Note("removed %s and %d that it called", ui.Printable(id), removed.Runs-1)
				if n := len(removed.HeldBy); n > 0 {
					env.Note("%d of its reruns have its input still, such as %s", n, ui.Printable(removed.HeldBy[0]))
				}
				return nil
			})
		}),
	}
}
