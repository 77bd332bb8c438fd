package flow

import "github.com/agent-on-demand/aod/capsule/flow"

// Rehearsed is the Request.Extra of a run that is a test: a Rehearsal takes the place of units
// and people, and Walked learns where the walk goes.
type Rehearsed struct {
	Rehearsal *flow.Rehearsal
	Walked    *flow.Walked
}

// rehearsed returns the host of the walk.
func (h *host) rehearsed() flow.Host {
	if r, ok := h.Extra.(Rehearsed); ok {
		return r.Rehearsal.Host(h, r.Walked)
	}
	return h
}
