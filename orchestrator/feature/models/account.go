package models

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	modelscript "github.com/agent-on-demand/aod/handoff/gateway/script"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Models are what runs may ask of models, and in which bounds. The zero Models lets them ask
// for nothing.
type Models struct {
	Gateway    *gateway.Gateway
	Budget     ledger.Amount // of a tree of runs; 0 bounds nothing
	Transcript bool          // requests and answers are kept with the run
}

// List returns the models that units can ask for, by name.
func (m Models) List() []api.Model {
	if m.Gateway == nil {
		return []api.Model{}
	}
	return m.Gateway.Models()
}

// Source answers the runs of one command instead of providers, or listens. The zero one does
// neither.
type Source struct {
	Script *modelscript.Script // answers instead of every provider
	Replay *cassette.Player    // answers what was recorded, and nothing else
	Record *cassette.Recorder  // is told each answer of a provider
}

// Options are what an Account is made of.
type Options struct {
	Run     *run.Run // its Dir is set; the rest, before Open
	Models  Models
	Source  Source
	Ledger  *ledger.Tree // of all runs
	Cache   *Cache       // of all runs; not asked for a run without a version
	Journal Journal
	Logger  *slog.Logger

	// hears of each call, also of one that isn't listed
	Asked func(api.ModelCall)
	Span  func(name string, options ...trace.SpanStartOption) trace.Span // starts a span below that of the run
}

// Account is what one run asks of models, what that takes, and what is kept of it.
type Account struct {
	opts       Options
	run        *run.Run
	spending   spending
	transcript *transcript
	listing    sync.Mutex   // one call is listed at a time: events have the order of the transcript
	answered   atomic.Int64 // bytes of the answers that are kept by their keys
}

// New returns the account of a run, which isn't open.
func New(opts Options) *Account {
	return &Account{opts: opts, run: opts.Run, transcript: newTranscript(opts.Run.Dir)}
}

// Source is what answers the run instead of providers.
func (a *Account) Source() Source { return a.opts.Source }

// Open lets the run spend on models, within its own budgets and those above it.
func (a *Account) Open() {
	path := a.run.Lineage.Path
	own := path[len(path)-1].Budgets
	limit := ledger.Amount{Tokens: own.Tokens, Cost: int64(own.Cost)}
	if a.run.Lineage.Parent == "" {
		limit = smaller(limit, a.opts.Models.Budget)
	}
	a.opts.Ledger.Open(a.run.ID, a.run.Lineage.Parent, limit)
}

// smaller returns the smaller of two limits, of which 0 is none.
func smaller(a, b ledger.Amount) ledger.Amount {
	return ledger.Amount{Tokens: quantity.Smaller(a.Tokens, b.Tokens), Cost: quantity.Smaller(a.Cost, b.Cost)}
}

// paths are the addresses of the gateway in the capsule API.
var paths = []string{"/v1", "/chat/completions", "/responses", "/messages", "/embeddings", "/models"}

// Mounts are the addresses at which the run asks for models. They share one handler. The run
// lends its slot by turn while it waits.
func (a *Account) Mounts(turn gateway.Turn) []handoff.Mount {
	models := a.opts.Models
	if models.Gateway == nil {
		return nil
	}
	var once sync.Once
	var handler http.Handler
	handlerOf := func(b *handoff.Broker) http.Handler {
		once.Do(func() { handler = models.Gateway.Handler(a.session(turn, b.Caller().Deadline)) })
		return handler
	}
	mounts := make([]handoff.Mount, len(paths))
	for i, path := range paths {
		mounts[i] = handoff.Mount{Path: path, New: handlerOf}
	}
	return mounts
}

// session is what the gateway knows of the run.
func (a *Account) session(turn gateway.Turn, deadline time.Time) gateway.Session {
	policy, source := a.run.Unit.Policy, a.opts.Source
	limited, costLimited := a.limits()
	s := gateway.Session{
		Run: a.run.ID, Root: a.run.Lineage.Root, Unit: a.run.Record.Unit,
		Models: policy.Models, MaxTokens: policy.MaxTokens, Deadline: deadline, Limited: limited || costLimited,
		CostLimited: costLimited,
		Ledger:      books{a}, Recorder: recorder{a}, Turn: turn,
		Content: a.keepsContent(), Cache: a.cache(),
		Script: source.Script, Replay: source.Replay, Record: source.Record,
	}
	if a.run.Durable {
		s.Answers = answers{a}
	}
	return s
}

// keepsContent reports whether what the run asks and hears may be kept.
func (a *Account) keepsContent() bool {
	return a.opts.Models.Transcript && a.run.Unit.Policy.Transcript
}

// limits reports whether a budget of tokens holds for the run, and one of cost.
func (a *Account) limits() (tokens, cost bool) {
	all := a.opts.Models.Budget
	tokens, cost = all.Tokens > 0, all.Cost > 0
	for _, step := range a.run.Lineage.Path {
		tokens, cost = tokens || step.Budgets.Tokens > 0, cost || step.Budgets.Cost > 0
	}
	return tokens, cost
}

// Note puts what the run and all below it spent into its record, before that is final.
func (a *Account) Note() {
	usage := a.spending.get()
	below, _ := a.opts.Ledger.Spent(a.run.ID)
	tree := api.ModelTotal{Charged: below.Tokens, Cost: api.Cost(below.Cost)}
	if usage == (api.ModelUsage{}) && tree == (api.ModelTotal{}) {
		return
	}
	if tree.Charged != usage.Charged || tree.Cost != usage.Cost {
		usage.Tree = &tree
	}
	a.run.Record.Models = &usage
}

// Close ends what the run may spend.
func (a *Account) Close() { a.opts.Ledger.Close(a.run.ID) }
