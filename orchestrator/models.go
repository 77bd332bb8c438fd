package orchestrator

import (
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/gateway"
	"github.com/agent-on-demand/aod/gateway/cassette"
	"github.com/agent-on-demand/aod/gateway/ledger"
	modelscript "github.com/agent-on-demand/aod/gateway/script"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/queue"
)

// Models are what runs may ask of models, and in which bounds. The zero Models lets them ask
// for nothing.
type Models struct {
	Gateway    *gateway.Gateway
	Budget     ledger.Amount // of a tree of runs; 0 bounds nothing
	Transcript bool          // requests and answers are kept with the run
}

// ModelSource answers the runs of one command instead of providers, or listens. The zero one
// does neither.
type ModelSource struct {
	Script *modelscript.Script // answers instead of every provider
	Replay *cassette.Player    // answers what was recorded, and nothing else
	Record *cassette.Recorder  // is told each answer of a provider
}

// modelPaths are the addresses of the gateway in the capsule API.
var modelPaths = []string{"/v1", "/chat/completions", "/responses", "/messages", "/embeddings", "/models"}

// modelMounts are the addresses at which a run asks for models. They share one handler.
func (j *job) modelMounts(slot *queue.Yield) []handoff.Mount {
	models := j.loop.opts.Models
	if models.Gateway == nil {
		return nil
	}
	var once sync.Once
	var handler http.Handler
	handlerOf := func(b *handoff.Broker) http.Handler {
		once.Do(func() { handler = models.Gateway.Handler(j.modelSession(slot, b.Caller().Deadline)) })
		return handler
	}
	mounts := make([]handoff.Mount, len(modelPaths))
	for i, path := range modelPaths {
		mounts[i] = handoff.Mount{Path: path, New: handlerOf}
	}
	return mounts
}

// modelSession is what the gateway knows of the run.
func (j *job) modelSession(slot *queue.Yield, deadline time.Time) gateway.Session {
	policy, source := j.Unit.Policy, j.source
	s := gateway.Session{
		Run: j.ID, Root: j.Lineage.Root, Unit: j.Record.Unit,
		Models: policy.Models, MaxTokens: policy.MaxTokens, Deadline: deadline, CostLimited: j.costLimited(),
		Ledger: modelLedger{j}, Recorder: modelRecorder{j}, Turn: slot,
		Content: j.keepsContent(), Cache: j.cachedAnswers(),
		Script: source.Script, Replay: source.Replay, Record: source.Record,
	}
	if j.Durable {
		s.Answers = keptAnswers{j}
	}
	return s
}

// keepsContent reports whether what the run asks and hears may be kept.
func (j *job) keepsContent() bool { return j.loop.opts.Models.Transcript && j.Unit.Policy.Transcript }

// costLimited reports whether a budget of cost holds for the run.
func (j *job) costLimited() bool {
	limited := j.loop.opts.Models.Budget.Cost > 0
	for _, step := range j.Lineage.Path {
		limited = limited || step.Budgets.Cost > 0
	}
	return limited
}
