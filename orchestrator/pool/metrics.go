package pool

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
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

// Stats returns the pool's current figures.
func (p *Pool) Stats() api.PoolStats {
	now := time.Now()
	_, backlog := p.busy()
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := api.PoolStats{Size: p.opts.Size, MemoryBytes: p.opts.MemoryBytes, Units: []api.PoolUnit{}}
	stats.Waiting, stats.UsedBytes = p.count()
	for name, units := range p.units {
		stats.Waiting -= units.coming
		stats.Units = append(stats.Units, units.stats(name, units.wanted(now, p.opts.Idle, backlog[name])))
	}
	slices.SortFunc(stats.Units, func(a, b api.PoolUnit) int { return strings.Compare(a.Unit, b.Unit) })
	return stats
}

func (s *unitPool) stats(unit string, wanted int) api.PoolUnit {
	stats := api.PoolUnit{
		Unit: unit, Wanted: wanted, Fixed: s.fixed, Starting: s.coming,
		Hits: s.hits, Misses: s.misses, Refills: s.refills, Failures: s.failures, Discarded: s.discarded,
		Waiting: []api.PoolSandbox{},
	}
	for _, p := range s.waiting {
		stats.Waiting = append(stats.Waiting,
			api.PoolSandbox{ID: p.ID, Container: p.Runtime.ID(), Loaded: p.Loaded, Since: p.Since.UTC()})
	}
	return stats
}
