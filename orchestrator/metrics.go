package orchestrator

import (
	"context"
	goruntime "runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/push"
	"github.com/agent-on-demand/aod/upstream"
)

// metrics are the metrics of a Service for Prometheus. Labels hold names of units, which the
// operator chose, names of nodes of flows, as many as nodeMetrics bears, and words of AOD.
type metrics struct {
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
	nodes    *nodeMetrics
	occurred *prometheus.CounterVec
	late     *prometheus.HistogramVec
	pushes   *prometheus.CounterVec
	told     *prometheus.HistogramVec
}

func newMetrics() *metrics {
	buckets := []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	return &metrics{
		runs:     counter("aod_runs_total", "Runs that have ended.", "unit", "outcome"),
		retries:  counter("aod_run_retries_total", "Attempts that failed and were made again.", "unit"),
		refusals: counter("aod_runs_refused_total", "Runs that were refused because their unit's queue was full.", "unit"),
		total:    histogram("aod_run_duration_seconds", "From the acceptance of a run to its outcome.", buckets),
		queued:   histogram("aod_run_queue_seconds", "Waiting for a slot.", buckets),
		program:  histogram("aod_run_program_seconds", "From the start of the program to its end.", buckets),
		models:   counter("aod_model_requests_total", "Requests for models that are over.", "model", "provider", "status", "rule"),
		tokens:   counter("aod_model_tokens_total", "Tokens that providers counted.", "model", "provider", "type"),
		asking:   histogramBy("aod_model_duration_seconds", "From a request for a model to the end of its answer.", buckets, "model"),
		first:    histogramBy("aod_model_first_seconds", "From a request for a model to the beginning of a streamed answer.", buckets, "model"),
		cost:     counter("aod_model_cost_total", "What was charged, in the currency of the prices.", "model", "provider"),
		again:    counter("aod_model_retries_total", "Attempts at providers after the first one of a request.", "model", "provider"),
		outside:  counter("aod_upstream_requests_total", "Requests to upstreams that are over.", "upstream", "status", "rule"),
		nodes:    newNodeMetrics(),
		occurred: counter("aod_schedule_occurrences_total", "Occurrences of schedules, by what became of them.", "outcome"),
		late:     histogramBy("aod_schedule_late_seconds", "From the time of an occurrence to its run.", buckets),
		pushes:   counter("aod_push_deliveries_total", "Tries to tell a receiver of an event, by what became of them.", "outcome"),
		told:     histogramBy("aod_push_delay_seconds", "From an event to its delivery.", buckets),
	}
}

// registryOf returns a registry with the metrics of a service and of its kinds.
func registryOf(s *Service) *prometheus.Registry {
	registry, m := prometheus.NewRegistry(), s.metrics
	registry.MustRegister(m.runs, m.retries, m.refusals, m.total, m.queued, m.program, m.models, m.tokens, m.asking, m.first, m.cost, m.again, m.outside,
		m.nodes.ends, m.occurred, m.late, m.pushes, m.told, moment{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for kind := range s.kinds.Each() {
		if own, ok := kind.(interface{ Collectors() []prometheus.Collector }); ok {
			registry.MustRegister(own.Collectors()...)
		}
	}
	return registry
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	return histogramBy(name, help, buckets, "unit")
}

func histogramBy(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// meet begins the counts of a unit at zero. Prometheus sees no increase in one that begins above
// it, and the first refusals are those that somebody should hear of.
func (m *metrics) meet(unit string) {
	m.refusals.WithLabelValues(unit)
	m.retries.WithLabelValues(unit)
	for _, outcome := range []api.Outcome{api.Success, api.SystemError} {
		m.runs.WithLabelValues(unit, string(outcome))
	}
}

func (m *metrics) countEnd(r api.Record) {
	m.runs.WithLabelValues(r.Unit, string(r.Outcome)).Inc()
	m.total.WithLabelValues(r.Unit).Observe(time.Since(r.CreatedAt).Seconds())
	m.queued.WithLabelValues(r.Unit).Observe(r.Timings.Queue / 1000)
	if r.StartedAt != nil {
		m.program.WithLabelValues(r.Unit).Observe(r.Timings.Run / 1000)
	}
}

func (m *metrics) retried(unit string) { m.retries.WithLabelValues(unit).Inc() }

func (m *metrics) refused(unit string) { m.refusals.WithLabelValues(unit).Inc() }

// asked counts a request for a model. A name that the operator doesn't know is no label.
func (m *metrics) asked(c api.ModelCall) {
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

// askedUpstream counts a request to an upstream, whose name is the operator's.
func (m *metrics) askedUpstream(e upstream.Exchange) {
	m.outside.WithLabelValues(e.Upstream, strconv.Itoa(e.Status), e.Rule).Inc()
}

// pushed counts what became of a delivery, and how long that was after its event.
func (m *metrics) pushed(r push.Result, after time.Duration) {
	m.pushes.WithLabelValues(string(r.Word)).Inc()
	if r.Word == push.Delivered {
		m.told.WithLabelValues().Observe(after.Seconds())
	}
}

// became counts occurrences of schedules by what became of them.
func (m *metrics) became(o api.OccurrenceOutcome, n int) {
	m.occurred.WithLabelValues(string(o)).Add(float64(n))
}

// begunLate counts a run of a schedule by how late it began.
func (m *metrics) begunLate(by time.Duration) { m.late.WithLabelValues().Observe(by.Seconds()) }

// Metrics returns the service's metrics, its current figures included.
func (s *Service) Metrics() prometheus.Gatherer { return s.registry }

// moment collects the current figures of a service at each scrape.
type moment struct{ service *Service }

var (
	descRunning = prometheus.NewDesc("aod_runs_running", "Runs that hold a slot.", nil, nil)
	descSlots   = prometheus.NewDesc("aod_slots", "Runs that may hold a slot at once.", nil, nil)
	descWaiting = prometheus.NewDesc("aod_runs_queued", "Runs that wait for a slot.", []string{"unit"}, nil)
	descFree    = prometheus.NewDesc("aod_disk_free_bytes", "Free space where runs are kept.", nil, nil)
	descStored  = prometheus.NewDesc("aod_stored_runs", "Runs that are remembered.", nil, nil)
	descBytes   = prometheus.NewDesc("aod_stored_bytes", "What is kept of finished runs.", nil, nil)
	descPooled  = prometheus.NewDesc("aod_pool_waiting", "Sandboxes that wait for a run.", []string{"unit"}, nil)
	descBuild   = prometheus.NewDesc("aod_build_info", "Always 1; its labels say what runs here.", []string{"version", "go_version"}, nil)
	descTunnels = prometheus.NewDesc("aod_egress_tunnels_total", "Tunnels and requests to hosts by name that were let through.", nil, nil)
	descBarred  = prometheus.NewDesc("aod_egress_refused_total", "Tunnels and requests to hosts by name that were refused.", nil, nil)
	descCarried = prometheus.NewDesc("aod_egress_bytes_total", "What went to hosts (out) and came from them (in).", []string{"direction"}, nil)
	descPushes  = prometheus.NewDesc("aod_push_backlog", "Events that receivers still have to be told of.", nil, nil)
	descPool    = prometheus.NewDesc("aod_pool_size", "Sandboxes that may wait for a run, those of all units together.", nil, nil)
)

// Describe implements prometheus.Collector.
func (moment) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRunning, descSlots, descWaiting, descFree, descStored, descBytes, descPooled, descPool, descBuild, descTunnels, descBarred, descCarried, descPushes} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (m moment) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	stats, err := m.service.Stats(ctx)
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(descStored, err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descRunning, float64(stats.Busy))
	gauge(descSlots, float64(stats.Slots))
	gauge(descFree, float64(stats.Disk.FreeBytes))
	gauge(descStored, float64(stats.Disk.StoredRuns))
	gauge(descBytes, float64(stats.Disk.StoredBytes))
	gauge(descBuild, 1, m.service.opts.Version, goruntime.Version())
	for _, unit := range stats.Units {
		if unit.Queued > 0 {
			gauge(descWaiting, float64(unit.Queued), unit.Unit)
		}
	}
	m.egress(metrics)
	if backlog, err := m.service.PushBacklog(ctx); err == nil {
		gauge(descPushes, float64(backlog))
	}
	pool := m.service.Pool()
	gauge(descPool, float64(pool.Size))
	for _, unit := range pool.Units {
		gauge(descPooled, float64(len(unit.Waiting)), unit.Unit)
	}
}

// egress collects what all runs reached by name. Hosts are no labels: programs choose them.
func (m moment) egress(metrics chan<- prometheus.Metric) {
	totals := m.service.opts.Egress.Totals()
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(descTunnels, totals.Tunnels)
	count(descBarred, totals.Refused)
	count(descCarried, totals.BytesIn, "in")
	count(descCarried, totals.BytesOut, "out")
}
