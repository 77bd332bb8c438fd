package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/orchestrator/backup"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a server's runs and units to one file",
		Long: `Write the runs, with their files, and the units of the server whose data directory is
--data to one file. The server may work meanwhile: the file has all that it had told of when
the command began. It replaces an older FILE only when it is whole and on the disk.

It has neither the server's token nor secrets.`,
		Example: "  aod backup aod-$(date +%F).tar.gz\n  aod backup --data /var/lib/aod /mnt/backup/aod.tar.gz",
		Args:    exactly(1, "the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := backup.Write(cmd.Context(), a.home(), args[0], versionText())
			if err != nil {
				return err
			}
			a.stdout.line("backed up %s: %s, %s", plural(int(report.Runs), "run"), plural(int(report.Files), "file"),
				bytesText(report.Bytes))
			return nil
		},
	}
}

// home is the server's part of this command's data directory.
func (a *app) home() string { return home(&config.Config{Data: filepath.Clean(a.data)}) }
