package schedules

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
)

// figures are the metrics of all schedules.
type figures struct {
	occurred *prometheus.CounterVec
	late     *prometheus.HistogramVec
}

func newFigures() *figures {
	return &figures{
		occurred: metrics.Counter("aod_schedule_occurrences_total", "Occurrences of schedules, by what became of them.",
			"outcome"),
		late: metrics.Histogram("aod_schedule_late_seconds", "From the time of an occurrence to its run."),
	}
}

// became counts n occurrences by what became of them.
func (f *figures) became(outcome api.OccurrenceOutcome, n int) {
	f.occurred.WithLabelValues(string(outcome)).Add(float64(n))
}

// began counts a run by how late it began.
func (f *figures) began(late time.Duration) { f.late.WithLabelValues().Observe(late.Seconds()) }
