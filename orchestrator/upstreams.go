package orchestrator

import (
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// maxUpstreamEvents is how many requests of a run to upstreams have an event each. All are
// counted.
const maxUpstreamEvents = 100

// askedUpstreams are what a run has asked of upstreams.
type askedUpstreams struct {
	mu     sync.Mutex
	by     map[string]api.UpstreamUse
	events int
}

// add counts a request, and reports whether it has an event.
func (a *askedUpstreams) add(e upstream.Exchange) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[string]api.UpstreamUse{}
	}
	use := a.by[e.Upstream]
	use.Name = e.Upstream
	use.Requests++
	if e.Rule != "" {
		use.Refused++
	}
	use.BytesIn += e.BytesIn
	use.BytesOut += e.BytesOut
	a.by[e.Upstream] = use
	a.events++
	return a.events <= maxUpstreamEvents
}

// list returns the uses by name; nil: there were none.
func (a *askedUpstreams) list() (all []api.UpstreamUse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.by)) {
		all = append(all, a.by[name])
	}
	return all
}

// upstreamMounts are the addresses at which a run asks upstreams.
func (j *job) upstreamMounts() []handoff.Mount {
	upstreams := j.loop.opts.Upstreams
	if upstreams == nil {
		return nil
	}
	return []handoff.Mount{{Path: upstream.Path, New: func(b *handoff.Broker) http.Handler {
		return upstreams.Handler(upstream.Session{
			Run: j.ID, Names: j.Unit.Policy.Upstreams,
			Deadline: b.Caller().Deadline, Record: j.askedUpstream,
		})
	}}}
}

// askedUpstream takes note of a request that is over.
func (j *job) askedUpstream(e upstream.Exchange) {
	j.loop.metrics.UpstreamAsked(e)
	if j.upstreams.add(e) {
		j.Tell(run.Event{Upstream: &api.UpstreamEvent{
			At: e.Started.UTC(), Name: e.Upstream, Status: e.Status, Rule: e.Rule, BytesIn: e.BytesIn,
			BytesOut: e.BytesOut, MS: run.Milliseconds(e.Took),
		}})
	}
}

// noteUpstreams puts what the run asked of upstreams into its record, before that is final.
func (j *job) noteUpstreams() {
	if all := j.upstreams.list(); all != nil {
		j.Record.Upstreams = all
	}
}
