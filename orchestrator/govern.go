package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// govern gives a unit of the registry the policy that holds for it here.
func (s *Service) govern(u *unit.Unit) {
	var bounds unit.Bounds
	if s.opts.Bounds != nil {
		bounds = s.opts.Bounds(u.Name, u.Source == unit.FromUpload)
	}
	u.Govern(s.opts.Units[u.Name].Given, bounds.Within(s.maxTimeout(u), "max_timeout"))
}

// maxTimeout returns the longest that a run of a unit may take, as far as no policy says less.
// A flow takes nothing while it waits, for people above all.
func (s *Service) maxTimeout(u *unit.Unit) time.Duration {
	if s.conducts(u) {
		return max(s.opts.MaxTimeout, capsule.MaxFlowTimeout)
	}
	return s.opts.MaxTimeout
}

// policyOf tells what holds for a unit.
func (s *Service) policyOf(u *unit.Unit) *api.UnitPolicy {
	p, limits := u.Policy, run.Request{Unit: u}.Limits(s.opts.Limits)
	told := &api.UnitPolicy{
		Timeout: quantity.DurationText(limits.Timeout), MaxTimeout: quantity.DurationText(p.Bounds.Limits.Timeout),
		Retries: s.retries(u), MayCall: append([]string{}, p.Grants...),
	}
	if p.Refusal != nil {
		told.Refusal = &api.UnitRefusal{Message: p.Refusal.Msg, Hint: p.Refusal.Hint}
	}
	for _, l := range p.Lowered {
		told.Lowered = append(told.Lowered, api.LoweredWish(l))
	}
	if p.Network == "" {
		return told
	}
	told.Network, told.ReadOnly, told.Runtime = p.Network, !p.Writable, p.Isolation
	if len(p.Egress) > 0 {
		told.Egress = p.Egress.Strings()
	}
	told.MemoryBytes, told.CPUs, told.PIDs, told.OutputBytes = limits.MemoryBytes, limits.CPUs, limits.PIDs,
		limits.OutputBytes
	told.BuildNetwork = p.Bounds.NetworkOfBuilds()
	told.Reuse, told.Warm, told.Env = max(p.Reuse, 1), p.Warm, slices.Sorted(maps.Keys(p.Env))
	told.Upstreams, told.Secrets, told.Models = p.Upstreams, slices.Sorted(maps.Keys(p.Secrets)), p.Models
	return told
}

// retries returns how often a run of a unit is tried again.
func (l *loop) retries(u *unit.Unit) int {
	if l.conducts(u) {
		return 0 // its nodes have their own
	}
	n := l.opts.Retries
	if own := u.Policy.Retries; own != nil {
		n = *own
	}
	if most := u.Policy.Bounds.Retries; most != nil {
		n = min(n, *most)
	}
	return n
}

// shortened is a warning if a request asked for more time than there is, else "".
func (a accepted) shortened(holds time.Duration) string {
	if a.Timeout <= holds {
		return ""
	}
	return fmt.Sprintf("the timeout of %s was shortened to %s (%s)",
		quantity.DurationText(a.Timeout), quantity.DurationText(holds), a.Unit.Policy.Bounds.Rule("timeout"))
}
