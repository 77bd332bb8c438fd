package pool

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of a pool for Prometheus. Their labels are names of units, which
// the operator chose.
type metrics struct {
	hits    *prometheus.CounterVec
	misses  *prometheus.CounterVec
	refills *prometheus.CounterVec
	age     *prometheus.HistogramVec
}

func newMetrics() metrics {
	buckets := []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	return metrics{
		hits:    counter("aod_pool_hits_total", "Runs that got a sandbox which waited for them."),
		misses:  counter("aod_pool_misses_total", "Runs that started a container of their own."),
		refills: counter("aod_pool_refills_total", "Sandboxes that were started to wait for a run."),
		age: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "aod_pool_age_seconds", Help: "How long sandboxes had waited when a run got them.", Buckets: buckets,
		}, []string{"unit"}),
	}
}

func counter(name, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"unit"})
}

// Describe implements prometheus.Collector.
func (m metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(to)
	}
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.hits, m.misses, m.refills, m.age}
}

func (m metrics) hit(unit string, age time.Duration) {
	m.hits.WithLabelValues(unit).Inc()
	m.age.WithLabelValues(unit).Observe(age.Seconds())
}

func (m metrics) miss(unit string) { m.misses.WithLabelValues(unit).Inc() }

func (m metrics) refilled(unit string) { m.refills.WithLabelValues(unit).Inc() }
