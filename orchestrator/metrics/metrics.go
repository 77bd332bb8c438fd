package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
)

// Metrics are the metrics of a server for Prometheus.
type Metrics struct {
	runs     *prometheus.CounterVec
	retries  *prometheus.CounterVec
	refusals *prometheus.CounterVec
	total    *prometheus.HistogramVec
	queued   *prometheus.HistogramVec
	program  *prometheus.HistogramVec
	models   *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	asking   *prometheus.HistogramVec
	first    *prometheus.HistogramVec
	cost     *prometheus.CounterVec
	again    *prometheus.CounterVec
	outside  *prometheus.CounterVec
	nodes    *nodes
	occurred *prometheus.CounterVec
	late     *prometheus.HistogramVec
	pushes   *prometheus.CounterVec
	told     *prometheus.HistogramVec
}

// New returns metrics that begin at nothing.
func New() *Metrics {
	return &Metrics{
		runs:    counter("aod_runs_total", "Runs that have ended.", "unit", "outcome"),
		retries: counter("aod_run_retries_total", "Attempts that failed and were made again.", "unit"),
		refusals: counter("aod_runs_refused_total", "Runs that were refused because their unit's queue was full.",
			"unit"),
		total:   histogram("aod_run_duration_seconds", "From the acceptance of a run to its outcome.", "unit"),
		queued:  histogram("aod_run_queue_seconds", "Waiting for a slot.", "unit"),
		program: histogram("aod_run_program_seconds", "From the start of the program to its end.", "unit"),
		models: counter("aod_model_requests_total", "Requests for models that are over.", "model", "provider",
			"status", "rule"),
		tokens: counter("aod_model_tokens_total", "Tokens that providers counted.", "model", "provider", "type"),
		asking: histogram("aod_model_duration_seconds", "From a request for a model to the end of its answer.",
			"model"),
		first: histogram("aod_model_first_seconds",
			"From a request for a model to the beginning of a streamed answer.", "model"),
		cost: counter("aod_model_cost_total", "What was charged, in the currency of the prices.", "model",
			"provider"),
		again: counter("aod_model_retries_total", "Attempts at providers after the first one of a request.", "model",
			"provider"),
		outside: counter("aod_upstream_requests_total", "Requests to upstreams that are over.", "upstream", "status",
			"rule"),
		nodes: newNodes(),
		occurred: counter("aod_schedule_occurrences_total", "Occurrences of schedules, by what became of them.",
			"outcome"),
		late: histogram("aod_schedule_late_seconds", "From the time of an occurrence to its run."),
		pushes: counter("aod_push_deliveries_total", "Tries to tell a receiver of an event, by what became of them.",
			"outcome"),
		told: histogram("aod_push_delay_seconds", "From an event to its delivery."),
	}
}

// Registry returns a registry with the metrics, with what current returns at each scrape, and
// with the metrics of others.
func (m *Metrics) Registry(
	current func(context.Context) (Figures, error), others ...prometheus.Collector,
) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.runs, m.retries, m.refusals, m.total, m.queued, m.program, m.models, m.tokens, m.asking,
		m.first, m.cost, m.again, m.outside,
		m.nodes.ends, m.occurred, m.late, m.pushes, m.told, moment{current},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(others...)
	return registry
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	buckets := []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800} // seconds
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

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

// ModelAsked counts a request for a model. A name that the operator doesn't know is no label.
func (m *Metrics) ModelAsked(c api.ModelCall) {
	model := c.Model
	if c.Provider == "" {
		model = ""
	}
	m.models.WithLabelValues(model, c.Provider, strconv.Itoa(c.Status), c.Rule).Inc()
	m.tokens.WithLabelValues(model, c.Provider, "input").Add(float64(c.Tokens.Input))
	m.tokens.WithLabelValues(model, c.Provider, "output").Add(float64(c.Tokens.Output))
	if c.Provider == "" {
		return
	}
	m.asking.WithLabelValues(model).Observe(c.MS / 1000)
	m.cost.WithLabelValues(model, c.Provider).Add(float64(c.Cost) / 1e9)
	m.again.WithLabelValues(model, c.Provider).Add(float64(max(c.Attempts-1, 0)))
	if c.Stream && c.FirstMS > 0 {
		m.first.WithLabelValues(model).Observe(c.FirstMS / 1000)
	}
}

// UpstreamAsked counts a request to an upstream, whose name is the operator's.
func (m *Metrics) UpstreamAsked(e upstream.Exchange) {
	m.outside.WithLabelValues(e.Upstream, strconv.Itoa(e.Status), e.Rule).Inc()
}

// PushTried counts what became of a delivery, and how long that was after its event.
func (m *Metrics) PushTried(r pushes.Result, after time.Duration) {
	m.pushes.WithLabelValues(string(r.Word)).Inc()
	if r.Word == pushes.Delivered {
		m.told.WithLabelValues().Observe(after.Seconds())
	}
}

// StepKept counts a step of a flow if its node, or an item of its map, has ended.
func (m *Metrics) StepKept(unit string, s flow.Step) { m.nodes.count(unit, s) }

// Occurred counts occurrences of schedules by what became of them.
func (m *Metrics) Occurred(outcome api.OccurrenceOutcome, n int) {
	m.occurred.WithLabelValues(string(outcome)).Add(float64(n))
}

// BegunLate counts a run of a schedule by how late it began.
func (m *Metrics) BegunLate(by time.Duration) { m.late.WithLabelValues().Observe(by.Seconds()) }
