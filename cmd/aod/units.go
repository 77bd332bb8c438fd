package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

func (a *app) unitsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "units [NAME]",
		Short:   "List what a server can run, or show one unit with its contract",
		Example: "  aod units\n  aod units hello --json | jq .input_schema",
		Args:    atMostOne("the name of a unit, or nothing"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			if len(args) == 1 {
				return a.showUnit(ctx, server, args[0], asJSON)
			}
			return a.listUnits(ctx, server, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a unit")
	cmd.AddCommand(
		a.switchCommand("disable", "Switch a unit of a server off, so that its further runs are refused",
			(*client.Client).DisableUnit),
		a.switchCommand("enable", "Switch a unit of a server on again", (*client.Client).EnableUnit),
		a.unitVersionsCommand(), a.unitRollbackCommand(), a.unitRemoveCommand(),
	)
	return cmd
}

// switchCommand switches a unit off or on.
func (a *app) switchCommand(
	verb, short string, do func(*client.Client, context.Context, string) (api.Unit, error),
) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Long:    short + ".\nRuns that go on or wait are not touched. The server remembers it.",
		Example: "  aod units " + verb + " hello",
		Args:    exactly(1, "the name of a unit"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			unit, err := do(server, ctx, args[0])
			if err == nil {
				a.note("%s is %sd", printable(unit.Name), verb)
			}
			return err
		}),
	}
}

func (a *app) listUnits(ctx context.Context, server *client.Client, asJSON bool) error {
	units, err := server.Units(ctx)
	if err != nil {
		return err
	}
	titles := []string{"NAME", "KIND", "VERSION", "SOURCE", "TIMEOUT", "MEMORY", "NETWORK", "PROBLEM", "DESCRIPTION"}
	return tabled(a, allOf(units), asJSON, "", titles, func(unit api.Unit) []string {
		var holds api.UnitPolicy
		if unit.Policy != nil {
			holds = *unit.Policy
		}
		return []string{
			unit.Name, unit.Kind, short(unit.Version), unit.Source,
			holds.Timeout, sizeText(holds.MemoryBytes), holds.Network, problemText(unit), unit.Description,
		}
	})
}

func problemText(unit api.Unit) string {
	switch {
	case unit.Disabled:
		return "it is switched off"
	case unit.Problem != nil:
		return unit.Problem.Message
	case unit.Policy != nil && unit.Policy.Refusal != nil:
		return unit.Policy.Refusal.Message
	}
	return ""
}

func (a *app) showUnit(ctx context.Context, server *client.Client, name string, asJSON bool) error {
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
		page.field("limits", fmt.Sprintf("memory %s, cpus %v, pids %d, output %s", sizeText(p.MemoryBytes), p.CPUs,
			p.PIDs, sizeText(p.OutputBytes)))
		root := "read-only"
		if !p.ReadOnly {
			root = "writable"
		}
		page.field("sandbox", joined("network "+p.Network, "root "+root, p.Runtime))
		page.field("reaches", strings.Join(p.Egress, ", "))
		if p.Reuse > 1 {
			page.field("reuse", plural(p.Reuse, "run")+" a container")
		}
		if p.Warm > 0 {
			page.field("warm", plural(p.Warm, "container"))
		}
	}
	page.field("retries", fmt.Sprint(p.Retries))
	page.field("may call", strings.Join(p.MayCall, ", "))
	page.field("models", strings.Join(p.Models, ", "))
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
	if unit.Disabled {
		page.field("disabled", "its runs are refused: aod units enable "+unit.Name)
	}
	if s := unit.Status; s != nil {
		page.field("now", fmt.Sprintf("%d running, %d waiting", s.Running, s.Waiting))
		if s.Sessions > 0 {
			page.field("open", plural(s.Sessions, "session"))
		}
		if s.Next != nil {
			page.field("next run", joined(timeText(s.Next.At), "by "+s.Next.Schedule))
		}
		if s.LastRun != nil {
			page.field("last run", joined(s.LastRun.ID, string(s.LastRun.State.Status()), string(s.LastRun.Outcome)))
		}
	}
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
