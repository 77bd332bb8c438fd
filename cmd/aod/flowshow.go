package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func (a *app) flowShowCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "show DIR|NAME|RUN",
		Short: "Draw a flow, or a run of one with the states of its nodes",
		Long: `Draw the graph of a flow in a directory or of --units, or that of a run on a server, with how
often each node was done, has failed and is under way.`,
		Example: "  aod flow show ./my-flow\n  aod flow show ./my-flow --format mermaid\n  aod flow show 0198c0de-…",
		Args:    exactly(1, "one directory or name of a flow, or the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.flowShow(cmd.Context(), args[0], format) },
	}
	cmd.Flags().StringVar(&format, "format", "tree", "tree or mermaid")
	return cmd
}

func (a *app) flowShow(ctx context.Context, what, format string) error {
	graph, steps, err := a.graphOf(ctx, what)
	if err != nil {
		return err
	}
	switch format {
	case "tree":
		return a.print(graph.Tree(steps))
	case "mermaid":
		return a.print(graph.Mermaid(steps))
	}
	return fault.New(fault.Input, "there is no format %q", format).
		WithHint("it is tree or mermaid; aod flow export writes it as YAML or JSON")
}

func (a *app) print(text string) error {
	_, err := fmt.Fprint(a.stdout, printable(text))
	return err
}

// graphOf returns the graph of a directory, a name or a run, and the steps of a run.
func (a *app) graphOf(ctx context.Context, what string) (*flow.Flow, []flow.Step, error) {
	if httpwire.IsRunID(what) {
		return a.graphOfRun(ctx, what)
	}
	c, err := a.load(what)
	if err != nil {
		return nil, nil, err
	}
	if c.Flow == nil {
		return nil, nil, fault.New(fault.Input, "%q is no flow: it is of the kind %s", c.Name, c.Kind).
			WithHint("see aod describe %s", what)
	}
	return c.Flow, nil, nil
}

func (a *app) graphOfRun(ctx context.Context, id string) (*flow.Flow, []flow.Step, error) {
	server, err := a.connectFor(id)
	if err != nil {
		return nil, nil, err
	}
	raw, err := server.Flow(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	graph, findings := flow.Parse(raw)
	if graph == nil {
		return nil, nil, fault.New(fault.Internal, "the server's flow can't be read").WithFindings(findings)
	}
	var steps []flow.Step
	for s, err := range server.Steps(ctx, id) {
		if err != nil {
			return nil, nil, err
		}
		steps = append(steps, stepOf(s))
	}
	return graph, steps, nil
}

// stepOf is a step as a picture wants it.
func stepOf(s api.Step) flow.Step {
	step := flow.Step{Address: s.Address, Try: s.Try, State: flow.StepState(s.State), Action: s.Action}
	if s.Ended != nil {
		step.Ended = *s.Ended
	}
	return step
}
