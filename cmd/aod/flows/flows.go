// Package flows is `aod flow`: the graph of a flow, and what became of its steps. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package flows

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/schemas"
)

// Command is `aod flow`.
func Command(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Look at flows: their graphs, steps and states",
		Long: `A flow is a unit whose program is a graph of other units, in flow.yaml. It is run, called and
tested like every unit; these commands show what is in it, and how far a run of it is.`,
		Example: "  aod flow show ./my-flow\n  aod flow steps 0198c0de-…\n  aod flow state 0198c0de-… --out state",
		Args:    cli.KnownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(showCommand(env), stepsCommand(env), stateCommand(env), statsCommand(env),
		exportCommand(env), schemaCommand(env))
	return cmd
}

func schemaCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of flow.yaml, for editors",
		Example: "  aod flow schema > flow.schema.json",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			return env.Out.JSON(json.RawMessage(schemas.Flow()))
		},
	}
}

func exportCommand(env *cli.Env) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "export DIR|NAME|RUN",
		Short:   "Write a flow as YAML or JSON: the same flow both ways",
		Example: "  aod flow export ./my-flow --format json\n  aod flow export 0198c0de-… > flow.yaml",
		Args:    cli.Exactly(1, "one directory or name of a flow, or the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return export(cmd.Context(), env, args[0], format) },
	}
	cmd.Flags().StringVar(&format, "format", "yaml", "yaml or json")
	return cmd
}

func export(ctx context.Context, env *cli.Env, what, format string) error {
	graph, _, err := graphOf(ctx, env, what)
	if err != nil {
		return err
	}
	switch format {
	case "json":
		return env.Out.JSON(graph)
	case "yaml":
		raw, err := graph.YAML()
		if err != nil {
			return err
		}
		return printText(env, string(raw))
	}
	return fault.New(fault.Input, "there is no format %q", format).WithHint("it is yaml or json")
}

func showCommand(env *cli.Env) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "show DIR|NAME|RUN",
		Short: "Draw a flow, or a run of one with the states of its nodes",
		Long: `Draw the graph of a flow in a directory or of --units, or that of a run, with how
often each node was done, has failed and is under way.`,
		Example: "  aod flow show ./my-flow\n  aod flow show ./my-flow --format mermaid\n  aod flow show 0198c0de-…",
		Args:    cli.Exactly(1, "one directory or name of a flow, or the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return show(cmd.Context(), env, args[0], format) },
	}
	cmd.Flags().StringVar(&format, "format", "tree", "tree or mermaid")
	return cmd
}

func show(ctx context.Context, env *cli.Env, what, format string) error {
	graph, steps, err := graphOf(ctx, env, what)
	if err != nil {
		return err
	}
	switch format {
	case "tree":
		return printText(env, graph.Tree(steps))
	case "mermaid":
		return printText(env, graph.Mermaid(steps))
	}
	return fault.New(fault.Input, "there is no format %q", format).
		WithHint("it is tree or mermaid; aod flow export writes it as YAML or JSON")
}

func printText(env *cli.Env, text string) error {
	_, err := fmt.Fprint(env.Out, ui.Printable(text))
	return err
}

// graphOf returns the graph of a directory, a name or a run, and the steps of a run.
func graphOf(ctx context.Context, env *cli.Env, what string) (*flow.Flow, []flow.Step, error) {
	if httpwire.IsRunID(what) {
		return graphOfRun(ctx, env, what)
	}
	c, err := lookup.Load(env, what)
	if err != nil {
		return nil, nil, err
	}
	if c.Flow == nil {
		return nil, nil, fault.New(fault.Input, "%q is no flow: it is of the kind %s", c.Name, c.Kind).
			WithHint("see aod describe %s", what)
	}
	return c.Flow, nil, nil
}

func graphOfRun(ctx context.Context, env *cli.Env, id string) (*flow.Flow, []flow.Step, error) {
	_, server, err := runlist.Find(env, id)
	if err != nil {
		return nil, nil, err
	}
	if server == nil {
		walk, err := runlist.History(env).Walk(id)
		if err != nil {
			return nil, nil, err
		}
		graph, err := parsed(walk.Graph)
		return graph, walk.Steps, err
	}
	raw, err := server.Flows.Graph(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	graph, err := parsed(raw)
	if err != nil {
		return nil, nil, err
	}
	var steps []flow.Step
	for s, err := range server.Flows.Steps(ctx, id) {
		if err != nil {
			return nil, nil, err
		}
		steps = append(steps, stepOf(s))
	}
	return graph, steps, nil
}

// parsed reads the graph of a run.
func parsed(raw []byte) (*flow.Flow, error) {
	graph, findings := flow.Parse(raw)
	if graph == nil {
		return nil, fault.New(fault.Internal, "the flow of the run can't be read").WithFindings(findings)
	}
	return graph, nil
}

// stepOf is a step as a picture wants it.
func stepOf(s api.Step) flow.Step {
	step := flow.Step{Address: s.Address, Try: s.Try, State: flow.StepState(s.State), Action: s.Action}
	if s.Ended != nil {
		step.Ended = *s.Ended
	}
	return step
}
