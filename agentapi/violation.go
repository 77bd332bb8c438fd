package agentapi

import "github.com/agent-on-demand/aod/fault"

// Violation is an answer that breaks the contract, with the rule's id in a Report. It is an
// Unsupported fault: a retry would bring the same answer.
type Violation struct {
	Rule  string
	Fault *fault.Error
}

func (v *Violation) Error() string { return v.Fault.Error() }

// Unwrap returns the fault.
func (v *Violation) Unwrap() error { return v.Fault }

func broken(rule, format string, args ...any) *Violation {
	f := fault.New(fault.Unsupported, "the agent breaks the agent HTTP contract: "+format, args...)
	return &Violation{Rule: rule, Fault: f.WithHint("it is the rule %s of aod check-agent, which tells all at once", rule)}
}
