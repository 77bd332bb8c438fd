package orchestrator

import (
	"fmt"
	"strings"
	"testing"
)

// gathered returns the metrics whose names begin so, a line each, a histogram as its count.
func (w *fixture) gathered(prefix string) string {
	families, err := w.service.Metrics().Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), prefix) {
			continue
		}
		for _, m := range family.GetMetric() {
			text.WriteString(family.GetName())
			for _, label := range m.GetLabel() {
				fmt.Fprintf(&text, " %s=%s", label.GetName(), label.GetValue())
			}
			fmt.Fprintln(&text, "", m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount()))
		}
	}
	return text.String()
}

// Prometheus sees no increase in a count that begins above zero.
func TestTheCountsOfAUnitBeginBeforeItsFirstRun(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for _, want := range []string{
		"aod_run_retries_total unit=worker 0\n",
		"aod_runs_refused_total unit=worker 0\n",
		"aod_runs_total outcome=success unit=worker 0\n",
		"aod_runs_total outcome=system_error unit=worker 0\n",
	} {
		within(t, func() bool { return strings.Contains(w.gathered("aod_run"), want) }, func() string { return want + w.gathered("aod_run") })
	}
}
