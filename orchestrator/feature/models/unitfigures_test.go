package models

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
)

// of returns the series of a metric, by team, type and unit.
func (f unitFigures) of(t *testing.T, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			key := ""
			for _, label := range m.GetLabel() {
				key += label.GetValue() + "/"
			}
			all[key] = m.GetCounter().GetValue()
		}
	}
	return all
}

func runOf(team, unit string) *api.Record {
	return &api.Record{Unit: unit, Owner: &api.Owner{Team: team}}
}

func TestModelsAreCountedByTeamAndUnit(t *testing.T) {
	f := newUnitFigures()
	call := &api.ModelCall{Tokens: api.ModelTokens{Input: 7, Output: 3}, Cost: 2_500_000_000}
	f.met(runOf("a", "idle"))
	f.met(runOf("a", "u"))
	f.asked(runOf("a", "u"), call)
	f.asked(runOf("a", "u"), call)
	f.asked(runOf("b", "u"), call)
	f.asked(&api.Record{Unit: "u"}, &api.ModelCall{})
	for name, want := range map[string]map[string]float64{
		"aod_unit_model_requests_total": {"a/idle/": 0, "a/u/": 2, "b/u/": 1, "default/u/": 1},
		"aod_unit_model_cost_total":     {"a/idle/": 0, "a/u/": 5, "b/u/": 2.5, "default/u/": 0},
		"aod_unit_model_tokens_total": {
			"a/input/idle/": 0, "a/output/idle/": 0, "a/input/u/": 14, "a/output/u/": 6, "b/input/u/": 7, "b/output/u/": 3,
			"default/input/u/": 0, "default/output/u/": 0,
		},
	} {
		if diff := cmp.Diff(want, f.of(t, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestPairsOfATeamAndAUnitAreBounded(t *testing.T) {
	f := newUnitFigures()
	call := &api.ModelCall{}
	for i := range maxPairs + 7 {
		f.asked(runOf("a", fmt.Sprint("u", i)), call)
	}
	f.asked(runOf("b", "u0"), call)
	got := f.of(t, "aod_unit_model_requests_total")
	if len(got) != maxPairs+2 || got["a//"] != 7 || got["b//"] != 1 || got["a/u0/"] != 1 {
		t.Errorf("%d series, %v of a and %v of b without a unit", len(got), got["a//"], got["b//"])
	}
}
