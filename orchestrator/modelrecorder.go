package orchestrator

import (
	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/gateway"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// modelRecorder implements gateway.Recorder for a run: an event, a metric and a span of
// each request, and a line of the transcript where there is one.
type modelRecorder struct{ job *job }

// Record implements gateway.Recorder.
func (m modelRecorder) Record(e gateway.Exchange) {
	j := m.job
	told := api.ModelCall{
		At: e.Started.UTC(), Dialect: string(e.Call.Dialect), Model: e.Call.Model, Provider: e.Call.Provider, Upstream: e.Call.Upstream,
		Source: string(e.Source), Stream: e.Call.Stream, Status: e.Status, Rule: e.Rule, Attempts: e.Attempts,
		Tokens: tokensOf(e.Spent.Usage), Charged: e.Spent.Amount.Tokens, Cost: api.Cost(e.Spent.Amount.Cost), Estimated: e.Spent.Estimated,
		FirstMS: run.Milliseconds(e.First), MS: run.Milliseconds(e.Took),
	}
	j.loop.metrics.ModelAsked(told)
	if j.spending.lists(told) {
		j.list(told, e)
		j.traceModel(e)
	}
}

// list keeps a call with the run, and tells it.
func (j *job) list(told api.ModelCall, e gateway.Exchange) {
	j.listing.Lock()
	defer j.listing.Unlock()
	var err error
	if told.N, err = j.transcript.add(told, e); err != nil {
		j.loop.logger.Warn("model call not in the transcript", "run", j.ID, fault.LogAttr(err))
	}
	j.Tell(run.Event{Model: &told})
}
