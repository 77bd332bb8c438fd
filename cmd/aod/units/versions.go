package units

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

func removeCommand(env *cli.Env) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove an uploaded unit from a server",
		Long: `Remove an uploaded unit from a server. A unit of a directory goes with its directory.
While runs of it go on or wait it stays, and they are named; with --force it is hidden from
new runs at once, and those that go on or wait are neither waited for nor cancelled.`,
		Example: "  aod units rm hello\n  aod units rm --force hello",
		Args:    cli.Exactly(1, "the name of a unit"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			if err := server.Units.Remove(ctx, args[0], force); err != nil {
				return err
			}
			env.Note("%s is removed", ui.Printable(args[0]))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also while runs of it go on or wait, which go on")
	return cmd
}

func versionsCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "versions NAME",
		Short:   "List the versions of a unit that a server keeps",
		Example: "  aod units versions hello",
		Args:    cli.Exactly(1, "the name of a unit"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			versions, err := server.Units.Versions(ctx, args[0])
			if err != nil {
				return err
			}
			titles := []string{"VERSION", "CURRENT", "SOURCE", "BY", "SINCE"}
			return cli.Table(env, cli.All(versions), asJSON, "", titles,
				func(v api.UnitVersion) []string {
					return []string{v.Version, currentText(v), v.Source, v.By, ui.Time(v.Since)}
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

func rollbackCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "rollback NAME VERSION",
		Short: "Make an earlier version of an uploaded unit its current one",
		Long: `Make an earlier version of an uploaded unit its current one, also of a unit that was
removed. It returns when the image is there. Runs that were accepted keep their version.`,
		Example: "  aod units rollback hello 3f1c2a9be0d47715",
		Args:    cli.Exactly(2, "the name of a unit, and one of the versions that `aod units versions NAME` lists"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			unit, err := server.Units.Rollback(ctx, args[0], args[1])
			if err == nil {
				env.Note("%s is at version %s", ui.Printable(unit.Name), ui.Printable(unit.Version))
			}
			return err
		}),
	}
}
