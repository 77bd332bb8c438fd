package container

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
)

// buildFigures are the metrics of the builds of images, those of the base image among them.
type buildFigures struct {
	ends *prometheus.CounterVec
	took prometheus.Histogram
}

// The outcomes of builds in metrics.
const (
	builtOutcome     = "built"
	failedOutcome    = "failed"    // a step of it
	timeoutOutcome   = "timeout"   // its time was up
	refusedOutcome   = "refused"   // its turn didn't come, or it isn't allowed
	abandonedOutcome = "abandoned" // nobody waits for it any more
	brokenOutcome    = "error"     // the engine's or AOD's
)

func newBuildFigures() *buildFigures {
	f := &buildFigures{
		ends: metrics.Counter("aod_builds_total", "Builds of images that have ended.", "outcome"),
		took: metrics.Seconds("aod_build_duration_seconds", "From the turn of a build to its end."),
	}
	for _, outcome := range []string{
		builtOutcome, failedOutcome, timeoutOutcome, refusedOutcome, abandonedOutcome, brokenOutcome,
	} {
		f.ends.WithLabelValues(outcome)
	}
	return f
}

func (f *buildFigures) collectors() []prometheus.Collector {
	return []prometheus.Collector{f.ends, f.took}
}

// ended counts a build that had its turn at a time; the zero time: it had none.
func (f *buildFigures) ended(turn time.Time, cause, err error) {
	f.ends.WithLabelValues(buildOutcome(cause, err)).Inc()
	if !turn.IsZero() {
		f.took.Observe(time.Since(turn).Seconds())
	}
}

// buildOutcome names the end of a build by its error, and by what its context ended with.
func buildOutcome(cause, err error) string {
	switch kind := fault.KindOf(err); {
	case err == nil:
		return builtOutcome
	case errors.Is(cause, errNobodyWaits), errors.Is(err, errNobodyWaits):
		return abandonedOutcome
	case kind == fault.BuildTimeout:
		return timeoutOutcome
	case kind == fault.Build:
		return failedOutcome
	case kind == fault.Busy, kind == fault.Forbidden:
		return refusedOutcome
	}
	return brokenOutcome
}
