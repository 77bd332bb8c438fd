package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
)

func TestAScrapeHasTheFiguresOfItsMoment(t *testing.T) {
	now, failed := Figures{
		Stats: api.Stats{Slots: 4, Busy: 3, Units: []api.UnitStats{{Unit: "u", Queued: 2}, {Unit: "idle"}}},
		Pool:  api.PoolStats{Size: 5, Units: []api.PoolUnit{{Unit: "u"}}},
		Teams: []Team{{Name: "a", Sessions: 2, Questions: 3, Oldest: 90 * time.Second}, {Name: "b"}},

		DatabaseBytes: 4096, BackedUp: time.Unix(1_800_000_000, 0),
	}, error(nil)
	registry := New().Registry(func(context.Context) (Figures, error) { return now, failed })
	want := map[string]float64{
		"aod_slots": 4, "aod_runs_running": 3, "aod_runs_queued u": 2, "aod_pool_size": 5, "aod_pool_waiting u": 0,
		"aod_database_bytes": 4096, "aod_backup_timestamp_seconds": 1_800_000_000,
		"aod_sessions_open a": 2, "aod_questions_open a": 3, "aod_question_oldest_seconds a": 90,
		"aod_sessions_open b": 0, "aod_questions_open b": 0, "aod_question_oldest_seconds b": 0,
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
		now.Stats.Busy, now.BackedUp = 1, time.Time{}
		want["aod_runs_running"], want["aod_backup_timestamp_seconds"] = 1, 0
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
		case "aod_slots", "aod_runs_running", "aod_runs_queued", "aod_pool_size", "aod_pool_waiting", "aod_database_bytes",
			"aod_backup_timestamp_seconds", "aod_sessions_open", "aod_questions_open", "aod_question_oldest_seconds", "aod_team_runs_total":
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

func TestRunsAreCountedByTeamUpToABound(t *testing.T) {
	m := New()
	m.RunEnded(api.Record{Unit: "u", Outcome: api.Success})
	for i := range MaxTeams + 5 {
		m.RunEnded(api.Record{Unit: "u", Outcome: api.Success, Owner: &api.Owner{Team: fmt.Sprint("team", i)}})
	}
	m.RunEnded(api.Record{Unit: "u", Outcome: api.TimedOut, Owner: &api.Owner{Team: "team0"}})
	got, err := scraped(m.Registry(func(context.Context) (Figures, error) { return Figures{}, nil }))
	teams := 0
	for name := range got {
		if strings.HasPrefix(name, "aod_team_runs_total") {
			teams++
		}
	}
	if err != nil || teams != MaxTeams+2 || got["aod_team_runs_total success "] != 6 || got["aod_team_runs_total timeout team0"] != 1 ||
		got["aod_team_runs_total success default"] != 1 {
		t.Errorf("%d series, %v without a name, %v", teams, got["aod_team_runs_total success "], err)
	}
}
