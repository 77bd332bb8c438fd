// Package upstreams has runs ask services whose keys stay outside, and keeps what they asked.
//
//	New               makes the Feature over the services that there are
//	part.Mounts       are the addresses at which an attempt asks
//	part.asked        counts a request that is over, and tells of the first ones
//	part.Conclude     puts the counts into the record
//
// It must not know the services and their keys, or who leads a run.
//
// Its Go API may change with every release: see docs/stability.md.
package upstreams

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// maxEvents is how many requests of a run have an event each. All are counted.
const maxEvents = 100

// Feature implements feature.Feature.
type Feature struct {
	upstreams *upstream.Upstreams
	requests  *prometheus.CounterVec
}

// New returns the Feature over the services that there are; nil: none.
func New(all *upstream.Upstreams) *Feature {
	return &Feature{upstreams: all, requests: metrics.Counter("aod_upstream_requests_total",
		"Requests to upstreams that are over.", "upstream", "status", "rule")}
}

// Collectors returns the metrics of all requests.
func (f *Feature) Collectors() []prometheus.Collector { return []prometheus.Collector{f.requests} }

// Join implements feature.Feature.
func (f *Feature) Join(_ context.Context, r *run.Run, _ feature.Part) feature.Part {
	return &part{feature: f, run: r, by: map[string]api.UpstreamUse{}}
}

// part is what a run has asked of upstreams.
type part struct {
	feature.Indifferent
	feature *Feature
	run     *run.Run

	mu     sync.Mutex
	by     map[string]api.UpstreamUse
	events int
}

// Mounts implements feature.Part.
func (p *part) Mounts(feature.Slot) []capsuleapi.Mount {
	if p.feature.upstreams == nil {
		return nil
	}
	return []capsuleapi.Mount{{Path: upstream.Path, New: func(b *handoff.Broker) http.Handler {
		return p.feature.upstreams.Handler(upstream.Session{
			Run: p.run.ID, Names: p.run.Unit.Policy.Upstreams, Deadline: b.Caller().Deadline, Record: p.asked,
		})
	}}}
}

// asked takes note of a request that is over. The name of an upstream is the operator's.
func (p *part) asked(e upstream.Exchange) {
	p.feature.requests.WithLabelValues(e.Upstream, strconv.Itoa(e.Status), e.Rule).Inc()
	if p.count(e) {
		p.run.Tell(run.Event{Data: api.UpstreamEvent{
			At: e.Started.UTC(), Name: e.Upstream, Status: e.Status, Rule: e.Rule, BytesIn: e.BytesIn,
			BytesOut: e.BytesOut, MS: run.Milliseconds(e.Took),
		}})
	}
}

// count counts a request, and reports whether it has an event.
func (p *part) count(e upstream.Exchange) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	use := p.by[e.Upstream]
	use.Name = e.Upstream
	use.Requests++
	if e.Rule != "" {
		use.Refused++
	}
	use.BytesIn += e.BytesIn
	use.BytesOut += e.BytesOut
	p.by[e.Upstream] = use
	p.events++
	return p.events <= maxEvents
}

// Conclude implements feature.Part.
func (p *part) Conclude() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.by) == 0 {
		return // what an earlier process noted stays
	}
	p.run.Record.Upstreams = nil
	for _, name := range slices.Sorted(maps.Keys(p.by)) {
		p.run.Record.Upstreams = append(p.run.Record.Upstreams, p.by[name])
	}
}
