package admin

import (
	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/audit"
	"github.com/agent-on-demand/aod/orchestrator/backup"
)

// BackupCommand is `aod backup`.
func BackupCommand(env *cli.Env) *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a server's runs and units to one file",
		Long: `Write the runs, with their files, and the units of the server whose data directory is
--data to one file. The server may work meanwhile: the file has all that it had told of when
the command began. With --replace it takes the place of an older FILE, when it is whole and on
the disk.

It has neither the server's token nor secrets.`,
		Example: "  aod backup aod-$(date +%F).tar.gz\n" +
			"  aod backup --replace --data /var/lib/aod /mnt/backup/aod.tar.gz",
		Args: cli.Exactly(1, "the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := backup.Target{File: args[0], Replace: replace}
			report, err := backup.Write(cmd.Context(), env.Home(), to, env.Version)
			if err == nil {
				err = audit.Leave(env.Home(), "write", "backup", args[0], "")
			}
			if err != nil {
				return err
			}
			env.Out.Line("backed up %s: %s, %s",
				ui.Plural(int(report.Runs), "run"), ui.Plural(int(report.Files), "file"), ui.Bytes(report.Bytes))
			return nil
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace a FILE that is there")
	return cmd
}

// RestoreCommand is `aod restore`.
func RestoreCommand(env *cli.Env) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a server's data directory of a backup",
		Long: `Make the data directory --data that of the server which FILE is a backup of. No server may
run over it. All of the file is unpacked and checked first; it takes its place when it is whole.

Runs that weren't over at the time of the backup are gone on with at the next start.`,
		Example: "  aod restore aod.tar.gz\n  aod restore --force aod.tar.gz      also where there are runs already: " +
			"they are moved aside",
		Args: cli.Exactly(1, "a file that `aod backup` wrote"),
		RunE: func(cmd *cobra.Command, args []string) error {
			done, err := backup.Restore(cmd.Context(), env.Home(), args[0], force)
			if err == nil {
				err = audit.Leave(env.Home(), "restore", "backup", args[0], "")
			}
			if err != nil {
				return err
			}
			if done.Aside != "" {
				env.Note("what was there before is in %s", done.Aside)
			}
			env.Out.Line("restored %s: %s, %s", ui.Plural(int(done.Runs), "run"), ui.Plural(int(done.Files), "file"),
				ui.Bytes(done.Bytes))
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "move what is there aside")
	return cmd
}
