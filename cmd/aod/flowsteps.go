package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
)

func (a *app) flowStepsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "steps RUN",
		Short:   "List the steps of a flow's run on a server",
		Example: "  aod flow steps 0198c0de-…\n  aod flow steps 0198c0de-… --json | jq 'select(.state == \"failed\")'",
		Args:    exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.flowSteps(cmd.Context(), args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each step as a JSON object on a line")
	return cmd
}

func (a *app) flowSteps(ctx context.Context, id string, asJSON bool) error {
	server, err := a.connectFor(id)
	if err != nil {
		return err
	}
	titles := []string{"NODE", "TRY", "STATE", "ACTION", "TOOK", "RUN", "ERROR"}
	return tabled(a, server.Steps(ctx, id), asJSON, "", titles, func(step api.Step) []string {
		return []string{
			step.Address, fmt.Sprint(step.Try), stepStateText(step), step.Action, tookText(step), step.Run,
			stepErrorText(step),
		}
	})
}

func stepStateText(s api.Step) string {
	if s.Cached {
		return string(s.State) + " (taken again)"
	}
	return string(s.State)
}

func tookText(s api.Step) string {
	if s.Ended == nil {
		return ""
	}
	return roundTime(s.Ended.Sub(s.Began)).String()
}

func stepErrorText(s api.Step) string {
	if s.Error == nil {
		return ""
	}
	return s.Error.Kind + ": " + s.Error.Message
}
