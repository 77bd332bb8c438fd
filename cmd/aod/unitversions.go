package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
)

func (a *app) unitRemoveCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove an uploaded unit from a server",
		Long: `Remove an uploaded unit from a server. A unit of a directory goes with its directory.
While runs of it go on or wait it stays, and they are named; with --force it is hidden from
new runs at once, and those that go on or wait are neither waited for nor cancelled.`,
		Example: "  aod units rm hello\n  aod units rm --force hello",
		Args:    exactly(1, "the name of a unit"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := a.connect()
			if err != nil {
				return err
			}
			if err := server.RemoveUnit(cmd.Context(), args[0], force); err != nil {
				return err
			}
			a.note("%s is removed", printable(args[0]))
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also while runs of it go on or wait, which go on")
	return cmd
}

func (a *app) unitVersionsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "versions NAME",
		Short:   "List the versions of a unit that a server keeps",
		Example: "  aod units versions hello",
		Args:    exactly(1, "the name of a unit"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.listVersions(cmd.Context(), args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a version")
	return cmd
}

func (a *app) listVersions(ctx context.Context, name string, asJSON bool) error {
	server, err := a.connect()
	if err != nil {
		return err
	}
	versions, err := server.UnitVersions(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		for _, v := range versions {
			if err := a.stdout.json(v); err != nil {
				return err
			}
		}
		return nil
	}
	table := newTable(a.stdout, "VERSION", "CURRENT", "SOURCE", "SINCE")
	for _, v := range versions {
		row(table, v.Version, currentText(v), v.Source, timeText(v.Since))
	}
	return table.Flush()
}

func currentText(v api.UnitVersion) string {
	if v.Current {
		return "yes"
	}
	return ""
}

func (a *app) unitRollbackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rollback NAME VERSION",
		Short: "Make an earlier version of an uploaded unit its current one",
		Long: `Make an earlier version of an uploaded unit its current one, also of a unit that was
removed. It returns when the image is there. Runs that were accepted keep their version.`,
		Example: "  aod units rollback hello 3f1c2a9be0d47715",
		Args:    exactly(2, "the name of a unit, and one of the versions that `aod units versions NAME` lists"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := a.connect()
			if err != nil {
				return err
			}
			unit, err := server.RollbackUnit(cmd.Context(), args[0], args[1])
			if err == nil {
				a.note("%s is at version %s", printable(unit.Name), printable(unit.Version))
			}
			return err
		},
	}
}
