package models

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	modelscript "github.com/agent-on-demand/aod/handoff/gateway/script"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Models are what runs may ask of models, and in which bounds. The zero Models lets them ask
// for nothing.
type Models struct {
	Gateway    *gateway.Gateway
	Budget     ledger.Amount // of a tree of runs; 0 bounds nothing
	Quotas     Quotas
	Transcript bool // requests and answers are kept with the run
}

// Source answers the runs of one command instead of providers, or listens. The zero one does
// neither.
type Source struct {
	Script *modelscript.Script // answers instead of every provider
	Replay *cassette.Player    // answers what was recorded, and nothing else
	Resume *cassette.Player    // answers what was recorded, and providers the rest
	Record *cassette.Recorder  // is told each answer of a provider
}

// account is a feature.Part: what one run asks of models, what that takes, and what is kept of it.
type account struct {
	feature.Indifferent
	*shared
	run        *run.Run
	source     Source
	spending   spending
	transcript *transcript
	listing    sync.Mutex   // one call is listed at a time: events have the order of the transcript
	answered   atomic.Int64 // bytes of the answers that are kept by their keys
}

// Open implements feature.Part: it lets the run spend on models, within its own budgets and those above it.
func (a *account) Open() {
	path := a.run.Lineage.Path
	own := path[len(path)-1].Budgets
	limit := ledger.Amount{Tokens: own.Tokens, Cost: int64(own.Cost)}
	if a.run.Lineage.Parent == "" {
		limit = smaller(limit, a.payers.ofTree())
	}
	a.ledger.Open(a.run.ID, a.run.Lineage.Parent, limit)
}

// smaller returns the smaller of two limits, of which 0 is none.
func smaller(a, b ledger.Amount) ledger.Amount {
	return ledger.Amount{Tokens: quantity.Smaller(a.Tokens, b.Tokens), Cost: quantity.Smaller(a.Cost, b.Cost)}
}

// paths are the addresses of the gateway in the capsule API.
var paths = []string{"/v1", "/chat/completions", "/responses", "/messages", "/embeddings", "/models"}

// Mounts implements feature.Part: the addresses at which the run asks for models. They share one handler. The run
// lends its slot by turn while it waits.
func (a *account) Mounts(slot feature.Slot) []capsuleapi.Mount {
	models := a.models
	if models.Gateway == nil {
		return nil
	}
	if len(a.run.Unit.Policy.Models) > 0 {
		a.figures.ofUnits.met(&a.run.Record)
	}
	var once sync.Once
	var handler http.Handler
	handlerOf := func(b *handoff.Broker) http.Handler {
		once.Do(func() { handler = models.Gateway.Handler(a.session(slot, b.Caller().Deadline)) })
		return handler
	}
	mounts := make([]capsuleapi.Mount, len(paths))
	for i, path := range paths {
		mounts[i] = capsuleapi.Mount{Path: path, New: handlerOf}
	}
	return mounts
}

// session is what the gateway knows of the run.
func (a *account) session(turn gateway.Turn, deadline time.Time) gateway.Session {
	policy, source := a.run.Unit.Policy, a.source
	s := gateway.Session{
		Run: a.run.ID, Root: a.run.Lineage.Root, Unit: a.run.Record.Unit,
		Models: policy.Models, MaxTokens: policy.MaxTokens, Deadline: deadline, Limited: a.limited,
		Ledger: ledgerStore{a}, Recorder: recorder{a}, Turn: turn,
		Content: a.keepsContent(), Cache: a.cache(),
		Script: source.Script, Replay: source.Replay, Resume: a.inherited(),
		Record: source.Record, Listener: listener{a},
	}
	if a.run.Durable {
		s.Answers = answers{a}
	}
	return s
}

// keepsContent reports whether what the run asks and hears may be kept.
func (a *account) keepsContent() bool {
	return a.models.Transcript && a.run.Unit.Policy.Transcript
}

// limited reports whether a budget or a quota holds for the run, and one of cost.
func (a *account) limited() (holds, cost bool) {
	all := a.payers.limits(a.run)
	for _, step := range a.run.Lineage.Path {
		all = append(all, ledger.Amount{Tokens: step.Budgets.Tokens, Cost: int64(step.Budgets.Cost)})
	}
	for _, limit := range all {
		holds, cost = holds || limit != (ledger.Amount{}), cost || limit.Cost > 0
	}
	return holds, cost
}

// Prepare implements feature.Part: a run of a unit that asks models is refused where its team or its token has nothing
// left for them. It stores nothing.
func (a *account) Prepare(ctx context.Context) ([]store.WithRun, error) {
	if len(a.run.Unit.Policy.Models) == 0 {
		return nil, nil
	}
	return nil, a.payers.check(ctx, a.run)
}

// Conclude implements feature.Part: it puts what the run and all below it spent into its record.
func (a *account) Conclude() {
	usage := a.spending.get()
	below, _ := a.ledger.Spent(a.run.ID)
	tree := api.ModelTotal{Charged: below.Tokens, Cost: api.Cost(below.Cost)}
	if usage == (api.ModelUsage{}) && tree == (api.ModelTotal{}) {
		return
	}
	if tree.Charged != usage.Charged || tree.Cost != usage.Cost {
		usage.Tree = &tree
	}
	a.run.Record.Models = &usage
}

// Close implements feature.Part: it ends what the run may spend.
func (a *account) Close() { a.ledger.Close(a.run.ID) }
