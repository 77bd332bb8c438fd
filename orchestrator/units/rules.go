package units

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Settings are the operator's settings for one unit. A zero field leaves the default.
type Settings struct {
	unit.Given
	Concurrency int           // runs at once
	Queue       int           // runs that may wait
	QueueWait   time.Duration // for which one may wait
	Teams       []string      // that may run it, beside the one to which it belongs; none: of a directory, all
}

// Given is what the operator says of single units. It can be changed while a server runs.
type Given struct {
	Settings map[string]Settings // by name
	// Bounds are the most that a unit may have, an uploaded one or one of a directory; nil bounds nothing beside
	// MaxTimeout.
	Bounds func(name string, uploaded bool) unit.Bounds

	change int // how often it was changed
}

// Rules are what the operator says of units, of all and of each.
type Rules struct {
	Kinds      run.Kinds
	Slots      int            // runs at once, of all units that take a slot
	Limits     runtime.Limits // in force where a unit says nothing
	MaxTimeout time.Duration  // the longest that a run may ask for
	Retries    int            // after an attempt that failed for a transient reason

	given atomic.Pointer[Given]
}

// Set has something else hold of single units, for what is begun from now on.
func (r *Rules) Set(given Given) {
	if r.given.Load() != nil {
		given.change = r.Change() + 1
	}
	r.given.Store(&given)
}

// now returns what is given; nothing before the first Set.
func (r *Rules) now() Given {
	if given := r.given.Load(); given != nil {
		return *given
	}
	return Given{}
}

// Change counts how often Set has changed what was given.
func (r *Rules) Change() int { return r.now().change }

// Of returns the settings of a unit.
func (r *Rules) Of(name string) Settings { return r.now().Settings[name] }

// concurrencyOf returns how many runs of a unit go on at once; 0: as many as the server allows.
func (r *Rules) concurrencyOf(u *unit.Unit) int {
	own := cmp.Or(r.Of(u.Name).Concurrency, u.Policy.Concurrency)
	switch {
	case u.Policy.ReadWrite:
		return 1
	case r.conducts(u):
		return own
	}
	return min(own, r.Slots)
}

func (r *Rules) conducts(u *unit.Unit) bool { return r.Kinds.Conducts(string(u.Kind)) }

// Govern gives a unit of the registry the policy that holds for it here.
func (r *Rules) Govern(u *unit.Unit) {
	var bounds unit.Bounds
	given := r.now()
	if given.Bounds != nil {
		bounds = given.Bounds(u.Name, u.Source == unit.FromUpload)
	}
	u.Policy.Change = given.change
	u.Govern(given.Settings[u.Name].Given, bounds.Within(r.MaxTimeoutOf(u), "max_timeout"))
}

// MaxTimeoutOf returns the longest that a run of a unit may take, as far as no policy says less.
// A flow takes nothing while it waits, for people above all.
func (r *Rules) MaxTimeoutOf(u *unit.Unit) time.Duration {
	if r.conducts(u) {
		return max(r.MaxTimeout, capsule.MaxFlowTimeout)
	}
	return r.MaxTimeout
}

// policyOf tells what holds for a unit.
func (r *Rules) policyOf(u *unit.Unit) *api.UnitPolicy {
	p, limits := u.Policy, run.Request{Unit: u}.Limits(r.Limits)
	told := &api.UnitPolicy{
		Timeout: quantity.DurationText(limits.Timeout), MaxTimeout: quantity.DurationText(p.Bounds.Limits.Timeout),
		Retries: r.RetriesOf(u), MayCall: append([]string{}, p.Grants...),
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

// RetriesOf returns how often a run of a unit is tried again.
func (r *Rules) RetriesOf(u *unit.Unit) int {
	if r.conducts(u) {
		return 0 // its nodes have their own
	}
	n := r.Retries
	if own := u.Policy.Retries; own != nil {
		n = *own
	}
	if most := u.Policy.Bounds.Retries; most != nil {
		n = min(n, *most)
	}
	return n
}
