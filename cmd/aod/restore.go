package main

import (
	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/orchestrator/backup"
)

func (a *app) restoreCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a server's data directory of a backup",
		Long: `Make the data directory --data that of the server which FILE is a backup of. No server may
run over it. All of the file is unpacked and checked first; it takes its place when it is whole.

Runs that weren't over at the time of the backup are gone on with at the next start.`,
		Example: "  aod restore aod.tar.gz\n  aod restore --force aod.tar.gz      also where there are runs already: " +
			"they are moved aside",
		Args: exactly(1, "a file that `aod backup` wrote"),
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := backup.Restore(cmd.Context(), a.home(), args[0], force)
			if err != nil {
				return err
			}
			if done.Aside != "" {
				a.note("what was there before is in %s", done.Aside)
			}
			a.stdout.line("restored %s: %s, %s", plural(int(done.Runs), "run"), plural(int(done.Files), "file"),
				bytesText(done.Bytes))
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "move what is there aside")
	return cmd
}
