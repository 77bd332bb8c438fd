package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/schemas"
)

func (a *app) flowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Look at flows: their graphs, steps and states",
		Long: `A flow is a unit whose program is a graph of other units, in flow.yaml. It is run, called and
tested like every unit; these commands show what is in it, and how far a run of it is.`,
		Example: "  aod flow show ./my-flow\n  aod flow steps 0198c0de-…\n  aod flow state 0198c0de-… --out state",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.flowShowCommand(), a.flowStepsCommand(), a.flowStateCommand(), a.flowStatsCommand(),
		a.flowExportCommand(), a.flowSchemaCommand())
	return cmd
}

func (a *app) flowSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of flow.yaml, for editors",
		Example: "  aod flow schema > flow.schema.json",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			return a.stdout.json(json.RawMessage(schemas.Flow()))
		},
	}
}
