package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
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
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			if err := server.RemoveUnit(ctx, args[0], force); err != nil {
				return err
			}
			a.note("%s is removed", printable(args[0]))
			return nil
		}),
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
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			versions, err := server.UnitVersions(ctx, args[0])
			if err != nil {
				return err
			}
			return tabled(a, allOf(versions), asJSON, "", []string{"VERSION", "CURRENT", "SOURCE", "SINCE"},
				func(v api.UnitVersion) []string {
					return []string{v.Version, currentText(v), v.Source, timeText(v.Since)}
				})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a version")
	return cmd
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
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			unit, err := server.RollbackUnit(ctx, args[0], args[1])
			if err == nil {
				a.note("%s is at version %s", printable(unit.Name), printable(unit.Version))
			}
			return err
		}),
	}
}
