// Package metrics counts what happens in a server, for Prometheus and for the figures of its API.
//
//	New               makes the counters and histograms; a method is named for what happened
//	Metrics.Registry  has them scraped, with the Figures of the moment
//	Recent            remembers which runs ended lately: rates, percentiles, the wait to expect
//
// Labels hold names of units, which the operator chose, names of teams and of nodes of flows, as many as
// Names lets through, and words of AOD. It must not know the store, the queue, nor how a run is
// led.
//
// Its Go API may change with every release: see docs/stability.md.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
)

// Metrics are the metrics of a server for Prometheus.
type Metrics struct {
	runs     *prometheus.CounterVec
	retries  *prometheus.CounterVec
	refusals *prometheus.CounterVec
	total    *prometheus.HistogramVec
	queued   *prometheus.HistogramVec
	program  *prometheus.HistogramVec
	nodes    *nodes
	ofTeams  *prometheus.CounterVec
	teams    *Names
}

// New returns metrics that begin at nothing.
func New() *Metrics {
	return &Metrics{
		runs:    Counter("aod_runs_total", "Runs that have ended.", "unit", "outcome"),
		retries: Counter("aod_run_retries_total", "Attempts that failed and were made again.", "unit"),
		refusals: Counter("aod_runs_refused_total", "Runs that were refused because their unit's queue was full.",
			"unit"),
		total:   Histogram("aod_run_duration_seconds", "From the acceptance of a run to its outcome.", "unit"),
		queued:  Histogram("aod_run_queue_seconds", "Waiting for a slot.", "unit"),
		program: Histogram("aod_run_program_seconds", "From the start of the program to its end.", "unit"),
		nodes:   newNodes(),
		ofTeams: Counter("aod_team_runs_total", "Runs of a team that have ended.", "team", "outcome"),
		teams:   NewNames(MaxTeams),
	}
}

// Registry returns a registry with the metrics, with what current returns at each scrape, and
// with the metrics of others.
func (m *Metrics) Registry(
	current func(context.Context) (Figures, error), others ...prometheus.Collector,
) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.runs, m.retries, m.refusals, m.total, m.queued, m.program, m.nodes.ends, m.ofTeams,
		moment{current}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(others...)
	return registry
}

// Counter returns a counter with labels.
func Counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Histogram returns a histogram of seconds with labels.
func Histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Seconds returns a histogram of seconds without labels.
func Seconds(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

var buckets = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800} // seconds

// UnitMet begins the counts of a unit at zero. Prometheus sees no increase in one that begins above
// it, and the first refusals are those that somebody should hear of.
func (m *Metrics) UnitMet(unit string) {
	m.refusals.WithLabelValues(unit)
	m.retries.WithLabelValues(unit)
	for _, outcome := range []api.Outcome{api.Success, api.SystemError} {
		m.runs.WithLabelValues(unit, string(outcome))
	}
}

// RunEnded counts a run that has its outcome.
func (m *Metrics) RunEnded(r api.Record) {
	m.runs.WithLabelValues(r.Unit, string(r.Outcome)).Inc()
	m.ofTeams.WithLabelValues(m.teams.Label(api.TeamOf(r.Owner)), string(r.Outcome)).Inc()
	m.total.WithLabelValues(r.Unit).Observe(time.Since(r.CreatedAt).Seconds())
	m.queued.WithLabelValues(r.Unit).Observe(r.Timings.Queue / 1000)
	if r.StartedAt != nil {
		m.program.WithLabelValues(r.Unit).Observe(r.Timings.Run / 1000)
	}
}

// RunRetried counts an attempt that failed and is made again.
func (m *Metrics) RunRetried(unit string) { m.retries.WithLabelValues(unit).Inc() }

// RunRefused counts a run that was refused, as its unit's queue was full.
func (m *Metrics) RunRefused(unit string) { m.refusals.WithLabelValues(unit).Inc() }

// StepKept counts a step of a flow if its node, or an item of its map, has ended.
func (m *Metrics) StepKept(unit string, s flow.Step) { m.nodes.count(unit, s) }
