package run

import (
	"fmt"

	"github.com/agent-on-demand/aod/api"
)

// boundHint returns what to do about a limit that the operator's bound has set, or the hint
// that the failure has: more in agent.yaml would change nothing.
func (r *Run) boundHint(failure api.RunError) string {
	most := r.Unit.Policy.Bounds.Limits
	var key string
	switch {
	case failure.Hint == moreTime && r.Limits.Timeout == most.Timeout:
		key = "timeout"
	case failure.Kind == "memory_limit" && r.Limits.MemoryBytes == most.MemoryBytes:
		key = "memory"
	case failure.Kind == "pids_limit" && r.Limits.PIDs == most.PIDs:
		key = "pids"
	case failure.Kind == "output_limit" && r.Limits.OutputBytes == most.OutputBytes:
		key = "output"
	}
	rule := r.Unit.Policy.Bounds.Rule(key)
	if rule == "" {
		return failure.Hint
	}
	return fmt.Sprintf("it has all that %s allows, which the operator can raise", rule)
}
