package models

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/metrics"
)

// figures are the metrics of the requests of all runs.
type figures struct {
	requests *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	took     *prometheus.HistogramVec
	first    *prometheus.HistogramVec
	cost     *prometheus.CounterVec
	again    *prometheus.CounterVec
	ofUnits  unitFigures
}

func newFigures() *figures {
	return &figures{
		requests: metrics.Counter("aod_model_requests_total", "Requests for models that are over.", "model",
			"provider", "status", "rule"),
		tokens: metrics.Counter("aod_model_tokens_total", "Tokens that providers counted.", "model", "provider",
			"type"),
		took: metrics.Histogram("aod_model_duration_seconds",
			"From a request for a model to the end of its answer.", "model"),
		first: metrics.Histogram("aod_model_first_seconds",
			"From a request for a model to the beginning of a streamed answer.", "model"),
		cost: metrics.Counter("aod_model_cost_total", "What was charged, in the currency of the prices.", "model",
			"provider"),
		again: metrics.Counter("aod_model_retries_total", "Attempts at providers after the first one of a request.",
			"model", "provider"),
		ofUnits: newUnitFigures(),
	}
}

func (f *figures) collectors() []prometheus.Collector {
	return append(f.ofUnits.collectors(), f.requests, f.tokens, f.took, f.first, f.cost, f.again)
}

// asked counts a request for a model, also one that isn't listed. A name that the operator doesn't know
// isn't a label.
func (f *figures) asked(c api.ModelCall) {
	model := c.Model
	if c.Provider == "" {
		model = ""
	}
	f.requests.WithLabelValues(model, c.Provider, strconv.Itoa(c.Status), c.Rule).Inc()
	f.tokens.WithLabelValues(model, c.Provider, "input").Add(float64(c.Tokens.Input))
	f.tokens.WithLabelValues(model, c.Provider, "output").Add(float64(c.Tokens.Output))
	if c.Provider == "" {
		return
	}
	f.took.WithLabelValues(model).Observe(c.MS / 1000)
	f.cost.WithLabelValues(model, c.Provider).Add(float64(c.Cost) / 1e9)
	f.again.WithLabelValues(model, c.Provider).Add(float64(max(c.Attempts-1, 0)))
	if c.Stream && c.FirstMS > 0 {
		f.first.WithLabelValues(model).Observe(c.FirstMS / 1000)
	}
}
