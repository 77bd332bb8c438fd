package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/quantity"
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
	table := newTable(a.stdout, "NAME", "KIND", "VERSION", "SOURCE", "TIMEOUT", "MEMORY", "NETWORK", "PROBLEM", "DESCRIPTION")
	for _, unit := range units {
		var holds api.UnitPolicy
		if unit.Policy != nil {
			holds = *unit.Policy
		}
		row(table, unit.Name, unit.Kind, short(unit.Version), unit.Source,
			holds.Timeout, sizeText(holds.MemoryBytes), holds.Network, problemText(unit), unit.Description)
	}
	return table.Flush()
}

func problemText(unit api.Unit) string {
	switch {
	case unit.Problem != nil:
		return unit.Problem.Message
	case unit.Policy != nil && unit.Policy.Refusal != nil:
		return unit.Policy.Refusal.Message
	}
	return ""
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
	if unit.Kind != capsule.KindMCP {
		return nil
	}
	tools, err := servedTools(ctx, server, name)
	if err == nil {
		runPage{out: a.stdout}.field("tools", strings.Join(tools, ", "))
	}
	return err
}

// policyPage shows what holds for a unit's runs.
func (a *app) policyPage(page runPage, p api.UnitPolicy) {
	timeout := p.Timeout
	if p.MaxTimeout != p.Timeout {
		timeout += ", at most " + p.MaxTimeout
	}
	page.field("timeout", timeout)
	if p.Network != "" {
		page.field("limits", fmt.Sprintf("memory %s, cpus %v, pids %d, output %s", sizeText(p.MemoryBytes), p.CPUs, p.PIDs, sizeText(p.OutputBytes)))
		root := "read-only"
		if !p.ReadOnly {
			root = "writable"
		}
		page.field("sandbox", joined("network "+p.Network, "root "+root, p.Runtime))
		if p.Reuse > 1 {
			page.field("reuse", plural(p.Reuse, "run")+" a container")
		}
		if p.Warm > 0 {
			page.field("warm", plural(p.Warm, "container"))
		}
	}
	page.field("retries", fmt.Sprint(p.Retries))
	page.field("may call", strings.Join(p.MayCall, ", "))
	page.field("env", strings.Join(p.Env, ", "))
	for _, l := range p.Lowered {
		page.field("lowered", fmt.Sprintf("%s: %s asked for, %s by %s", l.Setting, l.Asked, l.Holds, l.Rule))
	}
	if p.Refusal != nil {
		page.field("refused", p.Refusal.Message)
		page.field("", p.Refusal.Hint)
	}
}

func sizeText(n int64) string {
	if n == 0 {
		return ""
	}
	return quantity.SizeText(n)
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
	if unit.Policy != nil {
		a.policyPage(page, *unit.Policy)
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
