package workers

import "github.com/prometheus/client_golang/prometheus"

// Names of workers are labels: the operator chooses them.
var (
	descWorkers = prometheus.NewDesc("aod_workers", "Workers that have joined, by state: a connected one that takes "+
		"nothing new is drained.", []string{"state"}, nil)
	descSlots = prometheus.NewDesc("aod_worker_slots", "How many runs a worker that isn't lost takes at once.",
		[]string{"worker"}, nil)
	descRunning = prometheus.NewDesc("aod_worker_running", "Runs at a worker that isn't lost now.",
		[]string{"worker"}, nil)
	descLost = prometheus.NewDesc("aod_worker_leases_lost_total", "Attempts that their worker has lost.", nil, nil)
)

// Collectors returns the metrics of all workers.
func (f *Feature) Collectors() []prometheus.Collector { return []prometheus.Collector{figures{f}} }

type figures struct{ f *Feature }

// Describe implements prometheus.Collector.
func (figures) Describe(descs chan<- *prometheus.Desc) {
	descs <- descWorkers
	descs <- descSlots
	descs <- descRunning
	descs <- descLost
}

// Collect implements prometheus.Collector.
func (c figures) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, n int, label string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), label)
	}
	states, slots := c.f.registry.figures()
	for state, n := range states {
		gauge(descWorkers, n, state)
	}
	for name, n := range slots {
		gauge(descSlots, n, name)
		gauge(descRunning, c.f.process.Machines.Running(name), name)
	}
	metrics <- prometheus.MustNewConstMetric(descLost, prometheus.CounterValue, float64(c.f.lostAttempts.Load()))
}

// figures are how many workers have each state, and the slots of those that aren't lost. Who hasn't joined isn't among
// them.
func (g *registry) figures() (states, slots map[string]int) {
	states, slots = map[string]int{"connected": 0, "drained": 0, "away": 0, "lost": 0}, map[string]int{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.all {
		if w.seen.IsZero() {
			continue
		}
		present := g.presenceOf(w)
		if present != lost {
			slots[w.name] = w.about.Slots
		}
		switch {
		case present == there && w.drained:
			states["drained"]++
		case present == there:
			states["connected"]++
		case present == away:
			states["away"]++
		default:
			states["lost"]++
		}
	}
	return states, slots
}
