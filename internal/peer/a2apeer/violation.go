package a2apeer

import (
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
)

// The rules that an agent can break.
const (
	RuleCard       = "card"            // its card is of the protocol, and no larger than MaxCard
	RuleInterfaces = "card-interfaces" // its card has an interface that can be used
	RuleOrigin     = "card-origin"     // the interfaces of its card have the origin of its address
	RuleAnswer     = "answer"          // its answers are of the protocol
	RuleSize       = "size"            // they keep the bounds of this package
	RuleTask       = "task-id"         // they are about the task that was asked for
	RuleState      = "task-state"      // a task is in a state that the protocol has
)

// Violation is what an agent sent against a rule. It is an Unsupported fault: another try would bring the same.
type Violation = agenthttp.Violation

func broken(rule, format string, args ...any) *Violation {
	f := fault.New(fault.Unsupported, "the agent breaks the A2A protocol: "+format, args...)
	return &Violation{Rule: rule, Fault: f.WithHint("aod check-agent --a2a tells more of it")}
}
