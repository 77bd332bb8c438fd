package validate

import (
	"context"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/mcp"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// toolsOf asks an MCP server for the tools that may be called, and finds those that it lacks.
// Without an engine it is not asked.
func toolsOf(
	ctx context.Context, env *cli.Env, c *capsule.Capsule,
) (names []string, findings []fault.Finding, err error) {
	if c.MCP == nil {
		return nil, nil, nil
	}
	var tools []relay.Tool
	u := unit.Of(c)
	err = cli.WithUnit(ctx, env, u, cli.LocalOptions{}, func(l *cli.Local) error {
		view := progress.New(env.Err, c.Name, env.Quiet)
		defer view.Close()
		tools, err = l.Containers.Tools(ctx, u, func(e run.Event) {
			if e.Build != nil {
				view.Event(e)
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
		env.Note("%s %s: its server was not asked for its tools: %s", env.Err.Style(ui.Yellow, "note:"),
			ui.Printable(c.Name), ui.Printable(fault.Public(err).Msg))
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
				Hint: "it has " + strings.Join(mcp.ToolNames(tools), ", "),
			})
		}
	}
	return names, findings, nil
}
