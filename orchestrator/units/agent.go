package units

import (
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// agentOf returns how a wrapped agent is called; nil for another unit. Of its environment it has the
// names alone.
func (c *Catalogue) agentOf(u *unit.Unit) *api.UnitAgent {
	definition, is := u.Definition.(*capsule.Capsule)
	if !is || definition.Wrapped == nil {
		return nil
	}
	config := definition.Wrapped
	shown := &api.UnitAgent{
		Type: agentType(config), Enabled: !c.opts.Switches.isOff(u.Name, u.Policy.Disabled),
		Command: config.Command, Flags: config.Flags, Dir: agent.Dir(config), Mode: string(config.Mode),
		Input: string(config.Input), Output: string(config.Output),
		InputFile: config.InputFile, OutputFile: config.OutputFile, Protocol: string(config.Protocol),
		Env: slices.Sorted(maps.Keys(config.Env)), CallerEnv: config.CallerEnv, Approval: string(config.Approval),
		Approvers: config.Approvers,
	}
	if describer, err := c.describer(u); err == nil {
		shown.Program = describer.Program(u)
	}
	if config.Mode == agent.Interactive {
		shown.Session = &api.AgentSession{
			Idle: quantity.DurationText(config.Session.Idle), KeepAlive: config.Session.KeepAlive,
		}
	}
	return shown
}

// agentType says by which pattern a program is called (specification "Agent Wrapper", AgentType).
func agentType(c *agent.Config) string {
	if c.Input == agent.JSONRPC || c.Protocol == agent.ACP || c.Protocol == agent.PlainRPC {
		return string(agent.JSONRPC)
	}
	return string(c.Input) + "-" + string(c.Output)
}
