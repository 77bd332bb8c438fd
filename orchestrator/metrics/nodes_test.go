package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/capsule/flow"
)

func TestEndsOfNodesAreCountedByUnitNodeAndOutcome(t *testing.T) {
	m := newNodes()
	for _, s := range []flow.Step{
		{Address: "draft", State: flow.Done},
		{Address: "draft#2", State: flow.Done},
		{Address: "read[3]", State: flow.Failed},
		{Address: "read", State: flow.Done},
		{Address: "a#2/b[1]/c", State: flow.Skipped},
		{Address: "read[4]", State: flow.Failed, Until: time.Now()}, // tried again
		{Address: "ask", State: flow.Open},
	} {
		m.count("f", s)
	}
	want := map[string]float64{"f draft done": 2, "f read[] failed": 1, "f read done": 1, "f a/b/c skipped": 1}
	if diff := cmp.Diff(want, nodeEnds(t, m)); diff != "" {
		t.Error(diff)
	}
}

func TestTheNamesOfNodesInMetricsAreBounded(t *testing.T) {
	m := newNodes()
	for i := range maxNodeLabels + 10 {
		m.count("f", flow.Step{Address: fmt.Sprint("node", i), State: flow.Done})
	}
	m.count("f", flow.Step{Address: "node1", State: flow.Done})
	m.count("g", flow.Step{Address: "other", State: flow.Done})
	got := nodeEnds(t, m)
	if len(got) != maxNodeLabels+2 || got["f  done"] != 10 || got["f node1 done"] != 2 {
		t.Errorf("%d series, %v without a name, %v of node1", len(got), got["f  done"], got["f node1 done"])
	}
}

// nodeEnds returns the counters by unit, node and outcome.
func nodeEnds(t *testing.T, m *nodes) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.ends)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	counts := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		counts[labels["unit"]+" "+labels["node"]+" "+labels["outcome"]] = metric.GetCounter().GetValue()
	}
	return counts
}
