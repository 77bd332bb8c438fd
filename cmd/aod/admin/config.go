// Package admin is what an operator does with a server: its settings, tokens, secrets, pool, backups, and what it
// removes. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package admin

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// ConfigCommand is `aod config`.
func ConfigCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the server's settings, and where each comes from",
		Long: `Show every setting of the server as it would be in force with the same flags, the same
environment and the same file, and where it comes from. A flag wins over an environment
variable, that over the file, that over the default. Nothing is started; what is wrong is
reported at once, with exit code 2.`,
		Example: "  aod config --config aod.yaml\n  AOD_QUEUE=10 aod config --log-format json",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return showSettings(env, cmd, asJSON) },
	}
	cli.AddSettings(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the settings as JSON")
	cmd.AddCommand(reloadCommand(env))
	return cmd
}

// reloadCommand is `aod config reload`.
func reloadCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the server read its settings again",
		Long: `Have the server read its file, and what else its settings come from, again. Models, prices, budgets,
teams, tokens' quotas, the policy and what is set for single units hold at once, for what begins from
then on; the others are named, and hold when the server is started again. Where something is wrong
nothing changes, and all findings are told. SIGHUP to the server does the same.`,
		Example: "  aod config reload\n  aod config reload --server https://aod.example.com --json",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			done, err := server.Reload(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return env.Out.JSON(done)
			}
			for _, key := range done.Changed {
				_, _ = fmt.Fprintf(env.Out, "holds now      %s\n", ui.Printable(key))
			}
			for _, key := range done.Restart {
				_, _ = fmt.Fprintf(env.Out, "needs a start  %s\n", ui.Printable(key))
			}
			if len(done.Changed)+len(done.Restart) == 0 {
				_, err = fmt.Fprintln(env.Out, "nothing has changed")
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func showSettings(env *cli.Env, cmd *cobra.Command, asJSON bool) error {
	c, err := cli.LoadConfig(cmd)
	if err != nil {
		return err
	}
	if asJSON {
		return env.Out.JSON(c.Values())
	}
	return showValues(env, c.Values())
}

func showValues(env *cli.Env, values []config.Value) error {
	table := tabwriter.NewWriter(env.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "KEY\tVALUE\tSOURCE") // Flush returns the error
	for _, v := range values {
		text := ui.Printable(v.Value)
		if text == "" {
			text = "-"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", v.Key, text, ui.Printable(v.Source))
	}
	return table.Flush()
}
