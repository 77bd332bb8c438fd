package run

import (
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

// boundHint returns what to do about a limit that the operator has set or bounds, or the hint
// that the failure has: more in agent.yaml would change nothing.
func (r *Run) boundHint(failure api.RunError) string {
	key, bounded := r.limitOf(failure)
	if rule := r.Unit.Policy.Bounds.Rule(key); bounded && rule != "" {
		return fmt.Sprintf("it has all that %s allows, which the operator can raise", rule)
	}
	return strings.Replace(failure.Hint, "limits."+key+" in agent.yaml", r.Unit.PlaceOfLimit(key), 1)
}

// limitOf returns the key of the limit that a failure is about, and whether the run has as
// much as the operator's bound allows.
func (r *Run) limitOf(failure api.RunError) (key string, bounded bool) {
	most := r.Unit.Policy.Bounds.Limits
	switch {
	case failure.Hint == moreTime:
		return "timeout", r.Limits.Timeout == most.Timeout
	case failure.Kind == "memory_limit":
		return "memory", r.Limits.MemoryBytes == most.MemoryBytes
	case failure.Kind == "pids_limit":
		return "pids", r.Limits.PIDs == most.PIDs
	case failure.Kind == "output_limit":
		return "output", r.Limits.OutputBytes == most.OutputBytes
	}
	return "", false
}
