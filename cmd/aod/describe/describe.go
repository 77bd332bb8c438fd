// Package describe is `aod describe`: what a unit takes and gives, and how to call it. It must not know the root
// command.
//
// Its Go API may change with every release: see docs/stability.md.
package describe

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/skills"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Description is what a person wants to know of a unit before they run it.
type Description struct {
	Name        string           `json:"name"`
	Kind        string           `json:"kind"`
	Version     string           `json:"version,omitempty"`
	Description string           `json:"description,omitempty"`
	Dir         string           `json:"dir,omitempty"`    // of a unit on this machine
	Server      string           `json:"server,omitempty"` // of one on a server
	Input       []contract.Field `json:"input"`
	Output      []contract.Field `json:"output"`
	MayCall     []string         `json:"may_call,omitempty"`
	Skills      []skills.Skill   `json:"skills,omitempty"` // of a unit on this machine
	Network     string           `json:"network,omitempty"`
	Limits      map[string]any   `json:"limits,omitempty"`
	Example     *exampleCall     `json:"example"`
}

// Command is `aod describe`.
func Command(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe DIR|NAME",
		Short: "Show what a unit takes and gives, and how to call it",
		Long: `Show a unit's fields with their types and defaults, its files, whom it may call, its skills,
its limits and an example call. A directory needs no engine and no server. NAME is a unit of the server
that --server names; else it is looked for in --units, in the current directory and on the
server of this machine.`,
		Example: "  aod describe ./csv-report\n  aod describe hello --server http://127.0.0.1:7070\n" +
			"  aod describe ./csv-report --json | jq -r .example.command | sh",
		Args: cli.Exactly(1, "one directory or name of a unit"),
		RunE: func(cmd *cobra.Command, args []string) error {
			about, err := Unit(cmd.Context(), env, args[0])
			return cli.Show(env, about, err, asJSON, func(about Description) error { return about.show(env.Out) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// Unit describes a unit of this machine, or else one of the server.
func Unit(ctx context.Context, env *cli.Env, name string) (Description, error) {
	if lookup.IsName(name) && env.Server != "" {
		about, err := describeServed(ctx, env, name)
		return about, lookup.OnlyHere(env, name, err, "describes it")
	}
	c, err := lookup.Load(env, name)
	if err == nil {
		return describeHere(env, name, c), nil
	}
	if _, served := env.LocalServer(); lookup.IsName(name) && fault.Is(err, fault.NotFound) && served == nil {
		return describeServed(ctx, env, name)
	}
	return Description{}, err
}

func describeHere(env *cli.Env, arg string, c *capsule.Capsule) Description {
	u := unit.Of(c)
	about := Description{
		Name: c.Name, Kind: c.Kind, Version: c.Version, Description: c.Description, Dir: c.Dir,
		Input: c.Contract.Input.Fields(), Output: c.Contract.Output.Fields(),
		MayCall: u.Policy.Grants, Skills: c.Skills,
		Limits: limitsOf(u, c.Remote == nil), Example: exampleOf(callOf(env, target(arg, c.Dir), u), c),
	}
	if c.Remote == nil {
		about.Network = c.Agent.Network
	}
	return about
}

// callOf begins a command that runs a unit of this machine, and finds what that may call.
func callOf(env *cli.Env, target string, u *unit.Unit) string {
	words := []string{"aod run", ui.Quoted(target)}
	if len(u.Policy.Grants) > 0 {
		for _, dir := range env.Units {
			words = append(words, "--units", ui.Quoted(dir))
		}
	}
	return strings.Join(words, " ")
}

// limitsOf are the limits of a unit's runs. A unit without a container has but one.
func limitsOf(u *unit.Unit, contained bool) map[string]any {
	l := run.Request{Unit: u}.Limits(runtime.DefaultLimits())
	limits := map[string]any{"timeout": quantity.DurationText(l.Timeout)}
	if !contained {
		return limits
	}
	for name, bytes := range map[string]int64{"memory": l.MemoryBytes, "output": l.OutputBytes, "log": l.LogBytes} {
		limits[name] = quantity.SizeText(bytes)
	}
	limits["cpus"], limits["pids"] = l.CPUs, l.PIDs
	return limits
}

// target is how a unit of this machine is named on a command line in this directory.
func target(arg, dir string) string {
	if registry.SameDir(arg, dir) {
		return arg
	}
	rel := ui.RelativePath(dir)
	if !filepath.IsAbs(rel) {
		rel = "." + string(filepath.Separator) + rel
	}
	return rel
}

func describeServed(ctx context.Context, env *cli.Env, name string) (Description, error) {
	server, err := env.Connect()
	if err != nil {
		return Description{}, err
	}
	u, err := server.Units.Get(ctx, name)
	if err != nil {
		return Description{}, err
	}
	about := Description{
		Name: u.Name, Kind: u.Kind, Version: u.Version, Description: u.Description, Server: server.Server(),
		Input: []contract.Field{}, Output: []contract.Field{},
	}
	input, output := contractOf(u)
	if input != nil {
		about.Input = input.Fields()
		about.Example = generated("aod run "+ui.Quoted(name)+" --server "+ui.Quoted(server.Server()), input)
	}
	if output != nil {
		about.Output = output.Fields()
	}
	return about, nil
}

// contractOf returns the sides of the contract that a server tells; nil for one that can't be
// read here.
func contractOf(u api.Unit) (input, output *contract.Schema) {
	input, _ = contract.Compile(u.InputSchema)
	output, _ = contract.Compile(u.OutputSchema)
	return input, output
}

// show prints the description for a person.
func (d Description) show(out *ui.Output) error {
	page := ui.Page{Out: out}
	page.Field("unit", ui.Joined(d.Name, d.Kind, ui.Short(d.Version)))
	page.Field("about", d.Description)
	page.Field("source", d.Dir+d.Server)
	for _, side := range []struct {
		name   string
		fields []contract.Field
	}{{"input", d.Input}, {"output", d.Output}} {
		page.Field(side.name, fieldCount(side.fields))
		if err := showFields(out, side.fields); err != nil {
			return err
		}
	}
	page.Field("may call", strings.Join(d.MayCall, ", "))
	for i, skill := range d.Skills {
		page.Field([]string{"skills", ""}[min(i, 1)], skill.Name+": "+skill.Description)
	}
	page.Field("network", d.Network)
	page.Field("limits", limitsText(d.Limits))
	if d.Example != nil {
		out.Line("%s %s", out.Style(ui.Dim, fmt.Sprintf("%-9s", "example")), ui.Printable(d.Example.Command))
		page.Field("", d.Example.Note)
	}
	return nil
}

func fieldCount(fields []contract.Field) string {
	if len(fields) == 0 {
		return "any object: no field is declared"
	}
	return ui.Plural(len(fields), "field")
}

func limitsText(limits map[string]any) string {
	var parts []string
	for _, name := range []string{"timeout", "memory", "cpus", "pids", "output", "log"} {
		if limit, there := limits[name]; there {
			parts = append(parts, fmt.Sprintf("%s %v", name, limit))
		}
	}
	return strings.Join(parts, ", ")
}

func showFields(out *ui.Output, fields []contract.Field) error {
	if len(fields) == 0 {
		return nil
	}
	table := ui.NewTable(out, "  FIELD", "TYPE", "NEEDED", "DEFAULT", "ABOUT")
	for _, f := range fields {
		needed := ""
		if f.Required {
			needed = "yes"
		}
		ui.Row(table, "  "+f.Name, f.Type, needed, ui.JSON(f.Default), aboutField(f))
	}
	return table.Flush()
}

func aboutField(f contract.Field) string {
	var choices []string
	for _, choice := range f.Choices {
		choices = append(choices, ui.JSON(choice))
	}
	if len(choices) == 0 {
		return f.Description
	}
	return strings.TrimPrefix(f.Description+"; one of "+strings.Join(choices, ", "), "; ")
}
