package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// toolsOf asks an MCP server for the tools that may be called, and finds those that it lacks.
// Without an engine it is not asked.
func (a *app) toolsOf(ctx context.Context, c *capsule.Capsule) (names []string, findings []fault.Finding, err error) {
	if c.MCP == nil {
		return nil, nil, nil
	}
	var tools []relay.Tool
	u := unit.Of(c)
	err = a.withUnit(ctx, u, localOptions{}, func(l *local) error {
		view := newView(a.stderr, c.Name, a.quiet)
		defer view.close()
		tools, err = l.containers.Tools(ctx, u, func(e run.Event) {
			if e.Build != nil {
				view.event(e)
			}
		})
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case fault.Is(err, fault.Capsule):
		return nil, findingsOf(err), nil
	case err != nil:
		a.note("%s %s: its server was not asked for its tools: %s", a.stderr.style(yellow, "note:"), printable(c.Name),
			printable(fault.Public(err).Msg))
		return nil, nil, nil
	}
	known := map[string]bool{}
	for _, t := range tools {
		known[t.Name] = true
		if c.MCP.Offers(t.Name) {
			names = append(names, t.Name)
		}
	}
	for _, name := range c.MCP.Tools {
		if !known[name] {
			findings = append(findings, fault.Finding{
				File: "agent.yaml", Pointer: "/mcp/tools", Message: "mcp.tools: the server has no tool " +
					fault.Quote(name),
				Hint: "it has " + strings.Join(toolNames(tools), ", "),
			})
		}
	}
	return names, findings, nil
}

// servedTools are the names of the tools of a server's unit.
func servedTools(ctx context.Context, server *client.Client, name string) ([]string, error) {
	raw, err := server.Card(ctx, name)
	if err != nil {
		return nil, err
	}
	var card struct {
		Tools []relay.Tool `json:"tools"`
	}
	if err := json.Unmarshal(raw, &card); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the tools of %q can't be read", name)
	}
	return toolNames(card.Tools), nil
}
