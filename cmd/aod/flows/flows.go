// Package flows is `aod flow`: the graph of a flow, and what became of its steps. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/history"
	"github.com/agent-on-demand/aod/orchestrator/records"
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DIR|NAME|RUN",
		Short: "Draw a flow, or a run of one with the states of its nodes",
		Long: `Draw the graph of a flow in a directory or of --units, or that of a run, with how
often each node was done, has failed and is under way.`,
		Example: "  aod flow show ./my-flow\n  aod flow show ./my-flow --format mermaid\n  aod flow show 0198c0de-…",
		Args:    cli.Exactly(1, "one directory or name of a flow, or the id of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(cmd.Context(), env, args[0], format, asJSON)
		},
	}
	cmd.Flags().StringVar(&format, "format", "tree", "tree or mermaid")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object: the flow, and of a run its steps")
	cmd.MarkFlagsMutuallyExclusive("format", "json")
	return cmd
}

// shownFlow is what show prints as JSON.
type shownFlow struct {
	Flow  *flow.Flow `json:"flow"`
	Steps []api.Step `json:"steps,omitempty"` // of a run
}

func show(ctx context.Context, env *cli.Env, what, format string, asJSON bool) error {
	graph, steps, err := graphOf(ctx, env, what)
	if err != nil {
		return err
	}
	if asJSON {
		return env.Out.JSON(shownFlow{graph, steps})
	}
	drawn := make([]flow.Step, len(steps))
	for i, s := range steps {
		drawn[i] = stepOf(s)
	}
	switch format {
	case "tree":
		return printText(env, graph.Tree(drawn))
	case "mermaid":
		return printText(env, graph.Mermaid(drawn))
	}
	return fault.New(fault.Input, "there is no format %q", format).
		WithHint("it is tree or mermaid; aod flow export writes it as YAML or JSON")
}

func printText(env *cli.Env, text string) error {
	_, err := fmt.Fprint(env.Out, ui.Printable(text))
	return err
}

// graphOf returns the graph of a directory, a name or a run, and the steps of a run.
func graphOf(ctx context.Context, env *cli.Env, what string) (*flow.Flow, []api.Step, error) {
	if httpwire.IsRunID(what) {
		return graphOfRun(ctx, env, what)
	}
	c, err := lookup.Load(env, what)
	if err != nil {
		return nil, nil, err
	}
	if c.Flow == nil {
		return nil, nil, fault.New(fault.Input, "%q isn't a flow, but of the kind %s", c.Name, c.Kind).
			WithHint("see aod describe %s", what)
	}
	return c.Flow, nil, nil
}

func graphOfRun(ctx context.Context, env *cli.Env, id string) (*flow.Flow, []api.Step, error) {
	_, server, err := runlist.Find(env, id)
	if err != nil {
		return nil, nil, err
	}
	raw, err := rawGraph(ctx, env, server, id)
	if err != nil {
		return nil, nil, err
	}
	graph, findings := flow.Parse(raw)
	if graph == nil {
		return nil, nil, fault.New(fault.Internal, "the flow of the run can't be read").WithFindings(findings)
	}
	list, err := stepsOf(ctx, env, server, id)
	if err != nil {
		return nil, nil, err
	}
	var steps []api.Step
	for s, err := range list {
		if err != nil {
			return nil, nil, err
		}
		steps = append(steps, s)
	}
	return graph, steps, nil
}

// rawGraph returns the graph of a run, which is of this machine where there is no server.
func rawGraph(ctx context.Context, env *cli.Env, server *client.Client, id string) ([]byte, error) {
	if server != nil {
		return server.Flows.Graph(ctx, id)
	}
	walk, err := runlist.History(env).Walk(id)
	if err != nil {
		return nil, err
	}
	return walk.Graph, nil
}

// stepsOf returns the steps of such a run.
func stepsOf(
	ctx context.Context, env *cli.Env, server *client.Client, id string,
) (iter.Seq2[api.Step, error], error) {
	if server != nil {
		return server.Flows.Steps(ctx, id), nil
	}
	walk, err := runlist.History(env).Walk(id)
	if err != nil {
		return nil, err
	}
	return keptSteps(walk), nil
}

// keptSteps are those of a run of this machine.
func keptSteps(walk *history.Walk) iter.Seq2[api.Step, error] {
	return func(yield func(api.Step, error) bool) {
		for i, s := range walk.Steps {
			step, err := records.Shown(s)
			step.Seq = int64(i) + 1
			if !yield(step, err) {
				return
			}
		}
	}
}

// stepOf is a step as a picture wants it.
func stepOf(s api.Step) flow.Step {
	step := flow.Step{Address: s.Address, Try: s.Try, State: flow.StepState(s.State), Action: s.Action}
	if s.Ended != nil {
		step.Ended = *s.Ended
	}
	return step
}
