package models

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
)

// unitFigures are the metrics of the requests of units, by the teams whose runs made them.
type unitFigures struct {
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	cost     *prometheus.CounterVec
	teams    *metrics.Names
	pairs    *metrics.Names // of a team and a unit
}

// maxPairs is how many pairs of a team and a unit are told apart. What comes after them is counted for its team,
// without a unit.
const maxPairs = 2000

func newUnitFigures() unitFigures {
	return unitFigures{
		requests: metrics.Counter("aod_unit_model_requests_total", "Requests of a unit for models that are over.",
			"team", "unit"),
		tokens: metrics.Counter("aod_unit_model_tokens_total", "Tokens that providers counted for a unit.", "team",
			"unit", "type"),
		cost: metrics.Counter("aod_unit_model_cost_total",
			"What a unit was charged for models, in the currency of the prices.", "team", "unit"),
		teams: metrics.NewNames(metrics.MaxTeams), pairs: metrics.NewNames(maxPairs),
	}
}

func (f unitFigures) collectors() []prometheus.Collector {
	return []prometheus.Collector{f.requests, f.tokens, f.cost}
}

// met begins the counts of a unit's runs of a team at zero: Prometheus sees no increase in one that begins above it.
func (f unitFigures) met(r *api.Record) { f.asked(r, nil) }

// asked counts a request of a run; nil: it has made none yet.
func (f unitFigures) asked(r *api.Record, c *api.ModelCall) {
	team, unit := f.teams.Label(api.TeamOf(r.Owner)), r.Unit
	if f.pairs.Label(team+" "+unit) == "" {
		unit = ""
	}
	requests, cost := f.requests.WithLabelValues(team, unit), f.cost.WithLabelValues(team, unit)
	input, output := f.tokens.WithLabelValues(team, unit, "input"), f.tokens.WithLabelValues(team, unit, "output")
	if c == nil {
		return
	}
	requests.Inc()
	cost.Add(float64(c.Cost) / 1e9)
	input.Add(float64(c.Tokens.Input))
	output.Add(float64(c.Tokens.Output))
}
