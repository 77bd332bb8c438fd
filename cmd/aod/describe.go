package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// description is what a person wants to know of a unit before they run it.
type description struct {
	Name        string           `json:"name"`
	Kind        string           `json:"kind"`
	Version     string           `json:"version,omitempty"`
	Description string           `json:"description,omitempty"`
	Dir         string           `json:"dir,omitempty"`    // of a unit on this machine
	Server      string           `json:"server,omitempty"` // of one on a server
	Input       []contract.Field `json:"input"`
	Output      []contract.Field `json:"output"`
	MayCall     []string         `json:"may_call,omitempty"`
	Network     string           `json:"network,omitempty"`
	Limits      map[string]any   `json:"limits,omitempty"`
	Example     *exampleCall     `json:"example"`
}

func (a *app) describeCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe DIR|UNIT",
		Short: "Show what a unit takes and gives, and how to call it",
		Long: `Show a unit's fields with their types and defaults, its files, whom it may call, its limits
and an example call. A directory needs no engine and no server; a name is that of a unit in
--units, or of the server.`,
		Example: "  aod describe ./csv-report\n  aod describe hello --server http://127.0.0.1:7070\n" +
			"  aod describe ./csv-report --json | jq -r .example.command | sh",
		Args: exactly(1, "one directory or name of a unit"),
		RunE: func(cmd *cobra.Command, args []string) error {
			about, err := a.describe(cmd.Context(), args[0])
			return shown(a, about, err, asJSON, func(about description) error { return about.show(a.stdout) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// describe describes a unit of this machine, or else one of the server.
func (a *app) describe(ctx context.Context, name string) (description, error) {
	isName := !strings.ContainsRune(name, filepath.Separator)
	if info, err := os.Stat(name); isName && a.server != "" && (err != nil || !info.IsDir()) {
		return a.describeServed(ctx, name)
	}
	c, err := a.load(name)
	if err == nil {
		return a.describeHere(name, c), nil
	}
	if _, served := a.localServer(); isName && fault.Is(err, fault.NotFound) && served == nil {
		return a.describeServed(ctx, name)
	}
	return description{}, err
}

func (a *app) describeHere(arg string, c *capsule.Capsule) description {
	u := unit.Of(c)
	about := description{
		Name: c.Name, Kind: c.Kind, Version: c.Version, Description: c.Description, Dir: c.Dir,
		Input: c.Contract.Input.Fields(), Output: c.Contract.Output.Fields(), MayCall: u.Policy.Grants,
		Limits: limitsOf(u, c.Remote == nil), Example: exampleOf(a.callOf(target(arg, c.Dir), u), c),
	}
	if c.Remote == nil {
		about.Network = c.Agent.Network
	}
	return about
}

// callOf begins a command that runs a unit of this machine, and finds what that may call.
func (a *app) callOf(target string, u *unit.Unit) string {
	words := []string{"aod run", quoted(target)}
	if len(u.Policy.Grants) > 0 {
		for _, dir := range a.units {
			words = append(words, "--units", quoted(dir))
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
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		return arg
	}
	rel := relative(dir)
	if !filepath.IsAbs(rel) {
		rel = "." + string(filepath.Separator) + rel
	}
	return rel
}

func (a *app) describeServed(ctx context.Context, name string) (description, error) {
	server, err := a.connect()
	if err != nil {
		return description{}, err
	}
	u, err := server.Unit(ctx, name)
	if err != nil {
		return description{}, err
	}
	about := description{
		Name: u.Name, Kind: u.Kind, Version: u.Version, Description: u.Description, Server: server.Server(),
		Input: []contract.Field{}, Output: []contract.Field{},
	}
	input, output := contractOf(u)
	if input != nil {
		about.Input = input.Fields()
		about.Example = generated("aod run "+quoted(name)+" --server "+quoted(server.Server()), input)
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
func (d description) show(out *output) error {
	page := runPage{out: out}
	page.field("unit", joined(d.Name, d.Kind, short(d.Version)))
	page.field("about", d.Description)
	page.field("source", d.Dir+d.Server)
	for _, side := range []struct {
		name   string
		fields []contract.Field
	}{{"input", d.Input}, {"output", d.Output}} {
		page.field(side.name, fieldCount(side.fields))
		if err := showFields(out, side.fields); err != nil {
			return err
		}
	}
	page.field("may call", strings.Join(d.MayCall, ", "))
	page.field("network", d.Network)
	page.field("limits", limitsText(d.Limits))
	if d.Example != nil {
		out.line("%s %s", out.style(dim, fmt.Sprintf("%-9s", "example")), printable(d.Example.Command))
		page.field("", d.Example.Note)
	}
	return nil
}

func fieldCount(fields []contract.Field) string {
	if len(fields) == 0 {
		return "any object: no field is declared"
	}
	return plural(len(fields), "field")
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

func showFields(out *output, fields []contract.Field) error {
	if len(fields) == 0 {
		return nil
	}
	table := newTable(out, "  FIELD", "TYPE", "NEEDED", "DEFAULT", "ABOUT")
	for _, f := range fields {
		needed := ""
		if f.Required {
			needed = "yes"
		}
		row(table, "  "+f.Name, f.Type, needed, jsonText(f.Default), aboutField(f))
	}
	return table.Flush()
}

func aboutField(f contract.Field) string {
	var choices []string
	for _, choice := range f.Choices {
		choices = append(choices, jsonText(choice))
	}
	if len(choices) == 0 {
		return f.Description
	}
	return strings.TrimPrefix(f.Description+"; one of "+strings.Join(choices, ", "), "; ")
}
