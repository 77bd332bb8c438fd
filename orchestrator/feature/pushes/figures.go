package pushes

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/orchestrator/metrics"
)

// figures are the metrics of the deliveries of all runs.
type figures struct {
	tries   *prometheus.CounterVec
	delay   *prometheus.HistogramVec
	backlog func(context.Context) (int64, error)
}

func newFigures() *figures {
	return &figures{
		tries: metrics.Counter("aod_push_deliveries_total",
			"Tries to tell a receiver of an event, by what became of them.", "outcome"),
		delay: metrics.Histogram("aod_push_delay_seconds", "From an event to its delivery."),
	}
}

func (f *figures) collectors() []prometheus.Collector {
	return []prometheus.Collector{f.tries, f.delay, f}
}

// tried counts what became of a delivery, and how long that was after its event.
func (f *figures) tried(r Result, after time.Duration) {
	f.tries.WithLabelValues(string(r.Word)).Inc()
	if r.Word == Delivered {
		f.delay.WithLabelValues().Observe(after.Seconds())
	}
}

var descBacklog = prometheus.NewDesc("aod_push_backlog", "Events that receivers still have to be told of.", nil, nil)

// Describe implements prometheus.Collector.
func (f *figures) Describe(descs chan<- *prometheus.Desc) { descs <- descBacklog }

// scrapeTime bounds how long the backlog may take to be counted.
const scrapeTime = 5 * time.Second

// Collect implements prometheus.Collector. What isn't known has no figure.
func (f *figures) Collect(all chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	if n, err := f.backlog(ctx); err == nil {
		all <- prometheus.MustNewConstMetric(descBacklog, prometheus.GaugeValue, float64(n))
	}
}
