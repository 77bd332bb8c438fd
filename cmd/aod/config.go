package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/cmd/aod/config"
)

func (a *app) configCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the server's settings, and where each comes from",
		Long: `Show every setting of the server as it would be in force with the same flags, the same
environment and the same file, and where it comes from. A flag wins over an environment
variable, that over the file, that over the default. Nothing is started; what is wrong is
reported at once, with exit code 2.`,
		Example: "  aod config --config aod.yaml\n  AOD_QUEUE=10 aod config --log-format json",
		Args:    exactly(0, "nothing but flags"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.config(cmd, asJSON) },
	}
	addSettings(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the settings as JSON")
	return cmd
}

// addSettings adds the flags of the server's settings to a command. --data and --units
// belong to the root command.
func addSettings(cmd *cobra.Command) {
	cmd.Flags().String("config", "", "a YAML file of settings (AOD_CONFIG)")
	config.Flags(cmd.Flags(), "data", "units")
}

// loadConfig reads the settings for a command with their flags.
func (a *app) loadConfig(cmd *cobra.Command) (*config.Config, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	return config.Load(config.Options{File: file, Flags: cmd.Flags(), Getenv: os.Getenv, Data: defaultData()})
}

func (a *app) config(cmd *cobra.Command, asJSON bool) error {
	c, err := a.loadConfig(cmd)
	if err != nil {
		return err
	}
	if asJSON {
		return a.stdout.json(c.Values())
	}
	return a.showValues(c.Values())
}

func (a *app) showValues(values []config.Value) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "KEY\tVALUE\tSOURCE") // Flush returns the error
	for _, v := range values {
		text := printable(v.Value)
		if text == "" {
			text = "-"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", v.Key, text, printable(v.Source))
	}
	return table.Flush()
}
