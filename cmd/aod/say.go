package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func (a *app) sayCommand() *cobra.Command {
	var asData bool
	cmd := &cobra.Command{
		Use:   "say RUN TEXT",
		Short: "Say something to a run on a server",
		Long: `Say something to a run on a server that goes on. It is stored, and the run's program hears of
it when it asks for its messages: GET /messages, or aod.messages() in Python. What has not
begun yet finds it when it does. A program that never asks never hears of it.`,
		Example: "  aod say 0198c0de-… \"stop after this page\"\n  aod say 0198c0de-… --data '{\"pages\": 3}'",
		Args:    exactly(2, "the id of a run, and what to say"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.say(cmd.Context(), args[0], args[1], asData)
		},
	}
	cmd.Flags().BoolVar(&asData, "data", false, "TEXT is JSON, which the run gets as data")
	return cmd
}

func (a *app) say(ctx context.Context, id, text string, asData bool) error {
	saying := api.Saying{Text: text}
	if asData {
		if !json.Valid([]byte(text)) {
			return fault.New(fault.Input, "what is to be said is no JSON").
				WithHint("leave --data out to say it as text")
		}
		saying = api.Saying{Data: json.RawMessage(text)}
	}
	server, err := a.connect()
	if err != nil {
		return err
	}
	if _, err := server.Say(ctx, id, saying); err != nil {
		return err
	}
	a.note("said to %s", id)
	return nil
}
