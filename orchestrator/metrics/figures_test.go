package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
)

func TestAScrapeHasTheFiguresOfItsMoment(t *testing.T) {
	now, failed := Figures{
		Stats: api.Stats{Slots: 4, Busy: 3, Units: []api.UnitStats{{Unit: "u", Queued: 2}, {Unit: "idle"}}},
		Pool:  api.PoolStats{Size: 5, Units: []api.PoolUnit{{Unit: "u"}}},
	}, error(nil)
	registry := New().Registry(func(context.Context) (Figures, error) { return now, failed })
	want := map[string]float64{
		"aod_slots": 4, "aod_runs_running": 3, "aod_runs_queued u": 2, "aod_pool_size": 5, "aod_pool_waiting u": 0,
	}
	check := func(t *testing.T) {
		t.Helper()
		got, err := scraped(registry)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	t.Run("of units only those that wait", check)
	t.Run("anew each time", func(t *testing.T) {
		now.Stats.Busy = 1
		want["aod_runs_running"] = 1
		check(t)
	})
	t.Run("and fails where they can't be had", func(t *testing.T) {
		failed = errors.New("the store is damaged")
		if _, err := scraped(registry); err == nil || !strings.Contains(err.Error(), "the store is damaged") {
			t.Error(err)
		}
	})
}

// scraped returns the figures that depend on the units, the slots.
func scraped(registry *prometheus.Registry) (map[string]float64, error) {
	families, err := registry.Gather()
	figures := map[string]float64{}
	for _, family := range families {
		switch family.GetName() {
		case "aod_slots", "aod_runs_running", "aod_runs_queued", "aod_pool_size", "aod_pool_waiting":
			for _, m := range family.GetMetric() {
				name := family.GetName()
				for _, label := range m.GetLabel() {
					name += " " + label.GetValue()
				}
				figures[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return figures, err
}
