// Package egresses has runs reach hosts by name, and keeps which ones they reached.
//
//	New             makes the Feature over the one way out
//	Feature.Join    counts on from what a record tells
//	part.Mounts     is the proxy of an attempt, with the rules of its unit
//	part.Note       puts what was reached into the record
//
// part.Note (egresses.go) does so with each transition.
//
// It must not know who leads a run.
//
// Its Go API may change with every release: see docs/stability.md.
package egresses

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Feature implements feature.Feature.
type Feature struct{ door *egress.Door }

// New returns the Feature over a door.
func New(door *egress.Door) *Feature { return &Feature{door: door} }

// Join implements feature.Feature.
func (f *Feature) Join(_ context.Context, r *run.Run, _ feature.Part) feature.Part {
	p := &part{run: r, door: f.door}
	p.reached.Restore(r.Record.Egress)
	return p
}

type part struct {
	feature.Indifferent
	run     *run.Run
	door    *egress.Door
	reached egress.Tally // by the programs of all attempts
}

// Mounts implements feature.Part. A unit that may reach nothing hears there how to get some.
func (p *part) Mounts(feature.Slot) []capsuleapi.Mount {
	policy := p.run.Unit.Policy
	return []capsuleapi.Mount{{Path: capsuleapi.ProxyPath, New: func(*handoff.Broker) http.Handler {
		return p.door.Session(egress.Terms{
			Unit: p.run.Record.Unit, Allowed: policy.Egress, Bounded: policy.Bounds.Egress != nil,
			Cap: policy.Bounds.Egress, Tally: &p.reached, Tell: p.tell,
		})
	}}}
}

func (p *part) tell(e api.EgressEvent) {
	e.Host = p.run.Masked(e.Host)
	p.run.Tell(run.Event{Data: e})
}

// Note implements feature.Part. What a program reached at a worker is counted there.
func (p *part) Note() {
	if p.run.Record.Worker != "" {
		return
	}
	rows := p.reached.Rows()
	for i, row := range rows {
		rows[i].Host = p.run.Masked(row.Host)
	}
	p.run.Record.Egress = rows
}

// Hosts aren't labels: programs choose them.
var (
	descTunnels = prometheus.NewDesc("aod_egress_tunnels_total",
		"Tunnels and requests to hosts by name that were let through.", nil, nil)
	descRefused = prometheus.NewDesc("aod_egress_refused_total",
		"Tunnels and requests to hosts by name that were refused.", nil, nil)
	descBytes = prometheus.NewDesc("aod_egress_bytes_total", "What went to hosts (out) and came from them (in).",
		[]string{"direction"}, nil)
)

// Collectors returns the metrics of what all runs reached.
func (f *Feature) Collectors() []prometheus.Collector { return []prometheus.Collector{totals{f.door}} }

type totals struct{ door *egress.Door }

// Describe implements prometheus.Collector.
func (totals) Describe(descs chan<- *prometheus.Desc) {
	descs <- descTunnels
	descs <- descRefused
	descs <- descBytes
}

// Collect implements prometheus.Collector.
func (t totals) Collect(metrics chan<- prometheus.Metric) {
	now := t.door.Totals()
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(descTunnels, now.Tunnels)
	count(descRefused, now.Refused)
	count(descBytes, now.BytesIn, "in")
	count(descBytes, now.BytesOut, "out")
}
