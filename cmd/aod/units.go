package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
)

func (a *app) unitsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "units [NAME]",
		Short:   "List what a server can run, or show one unit with its contract",
		Example: "  aod units\n  aod units hello --json | jq .input_schema",
		Args:    atMostOne("the name of a unit, or nothing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.showUnit(cmd.Context(), args[0], asJSON)
			}
			return a.listUnits(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a unit")
	return cmd
}

func (a *app) listUnits(ctx context.Context, asJSON bool) error {
	server, err := a.connect()
	if err != nil {
		return err
	}
	units, err := server.Units(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		for _, unit := range units {
			if err := a.stdout.json(unit); err != nil {
				return err
			}
		}
		return nil
	}
	table := newTable(a.stdout, "NAME", "KIND", "VERSION", "SOURCE", "PROBLEM", "DESCRIPTION")
	for _, unit := range units {
		row(table, unit.Name, unit.Kind, short(unit.Version), unit.Source, problemText(unit), unit.Description)
	}
	return table.Flush()
}

func problemText(unit api.Unit) string {
	if unit.Problem == nil {
		return ""
	}
	return unit.Problem.Message
}

func (a *app) showUnit(ctx context.Context, name string, asJSON bool) error {
	server, err := a.connect()
	if err != nil {
		return err
	}
	unit, err := server.Unit(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		return a.stdout.json(unit)
	}
	a.unitPage(unit)
	return nil
}

func (a *app) unitPage(unit api.Unit) {
	page := runPage{out: a.stdout}
	page.field("unit", joined(unit.Name, unit.Kind, short(unit.Version)))
	page.field("about", unit.Description)
	page.field("source", joined(unit.Source, unit.Origin))
	page.field("image", unit.Image)
	page.field("access", unit.Access)
	if unit.Concurrency > 0 {
		page.field("at once", plural(unit.Concurrency, "run"))
	}
	if unit.Since != nil {
		page.field("since", timeText(*unit.Since))
	}
	if problem := unit.Problem; problem != nil {
		page.field("problem", problem.Message+", so that an older version is run")
		page.field("", problem.Hint)
		a.stdout.findings(problem.Findings)
	}
	for _, side := range []struct {
		name   string
		schema json.RawMessage
	}{{"input", unit.InputSchema}, {"output", unit.OutputSchema}} {
		page.field(side.name, string(side.schema))
	}
}
