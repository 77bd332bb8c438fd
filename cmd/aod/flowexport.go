package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
)

func (a *app) flowExportCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "export DIR|NAME|RUN",
		Short:   "Write a flow as YAML or JSON: the same flow both ways",
		Example: "  aod flow export ./my-flow --format json\n  aod flow export 0198c0de-… > flow.yaml",
		Args:    exactly(1, "one directory or name of a flow, or the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.flowExport(cmd.Context(), args[0], format) },
	}
	cmd.Flags().StringVar(&format, "format", "yaml", "yaml or json")
	return cmd
}

func (a *app) flowExport(ctx context.Context, what, format string) error {
	graph, _, err := a.graphOf(ctx, what)
	if err != nil {
		return err
	}
	switch format {
	case "json":
		return a.stdout.json(graph)
	case "yaml":
		raw, err := graph.YAML()
		if err != nil {
			return err
		}
		return a.print(string(raw))
	}
	return fault.New(fault.Input, "there is no format %q", format).WithHint("it is yaml or json")
}
