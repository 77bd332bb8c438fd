package models

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Feature implements feature.Feature: what runs ask of models.
type Feature struct{ shared }

// shared is what the accounts of all runs have in common.
type shared struct {
	models     Models
	ledger     *ledger.Tree
	payers     *payers
	cacheOfAll *Cache // not asked for a run without a version
	calls      feature.ModelCalls
	books      Books // nil: no run outlives the process
	logger     *slog.Logger
	figures    *figures
	words      *words
}

// New returns the Feature.
func New(m Models) *Feature {
	accounts := ledger.New()
	f := &Feature{shared{
		models: m, ledger: accounts, payers: newPayers(accounts), cacheOfAll: &Cache{}, figures: newFigures(),
		words: newWords(),
	}}
	f.Bound(m.Budget, m.Quotas)
	return f
}

// Init implements feature.Initializer.
func (f *Feature) Init(p feature.Process) error {
	f.calls, f.logger, f.cacheOfAll.Dir = p.ModelCalls, p.Logger, filepath.Join(p.Home.Dir, "modelcache")
	f.books, _ = p.ModelCalls.(Books)
	if p.Store != nil {
		f.payers.usages = p.Store.Usages
	}
	return nil
}

// List returns the models that units can ask for, by name; of no Feature, none.
func (f *Feature) List() []api.Model {
	if f == nil || f.models.Gateway == nil {
		return []api.Model{}
	}
	return f.models.Gateway.Models()
}

// Spent returns what a live run and all below it have spent, and what is set aside for them.
func (f *Feature) Spent(id string) (spent, reserved ledger.Amount) { return f.ledger.Spent(id) }

// Bound has another budget hold for trees of runs that begin from now on, and other quotas also for calls that wait.
func (f *Feature) Bound(budget ledger.Amount, q Quotas) { f.payers.set(budget, q) }

// Quotas implements feature.Bounder.
func (f *Feature) Quotas(ctx context.Context, mine func(team, token string) bool) ([]api.Quota, error) {
	return f.payers.all(ctx, mine)
}

// Collectors returns the metrics of all requests.
func (f *Feature) Collectors() []prometheus.Collector { return f.figures.collectors() }

type sourceKey struct{}

// WithSource has the runs that are asked for with a context, and those that they call, get their
// answers from a source.
func WithSource(ctx context.Context, source Source) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

// SourceOf returns the source of a context.
func SourceOf(ctx context.Context) Source {
	source, _ := ctx.Value(sourceKey{}).(Source)
	return source
}

// Join implements feature.Feature.
func (f *Feature) Join(ctx context.Context, r *run.Run, caller feature.Part) feature.Part {
	source := SourceOf(ctx)
	if caller, ok := caller.(*account); ok {
		source = caller.source
	}
	return &account{shared: &f.shared, run: r, source: source, transcript: newTranscript(r.Dir)}
}

// Restore implements feature.Restorer.
func (f *Feature) Restore(ctx context.Context, parts []feature.Part, tree feature.Ancestry) error {
	if f.books == nil {
		return nil
	}
	if err := f.books.SettleAll(ctx); err != nil {
		return fmt.Errorf("settle what an earlier process asked models: %w", err)
	}
	spent := spentBefore{books: f.books, tree: tree, by: map[string]map[string]ledger.Amount{}}
	for _, part := range parts {
		part.(*account).restore(ctx, f.books, spent.on)
	}
	return nil
}

// spentBefore is what an earlier process spent, by root and account.
type spentBefore struct {
	books Books
	tree  feature.Ancestry
	by    map[string]map[string]ledger.Amount
}

// on returns what counts on the account of a recovered run alone: its own, and that of runs below it
// which have ended. What recovered runs below it spent comes with theirs.
func (s spentBefore) on(ctx context.Context, root, account string) (ledger.Amount, error) {
	if s.by[root] == nil {
		rows, err := s.books.Spending(ctx, root)
		if err != nil {
			return ledger.Amount{}, err
		}
		accounts, err := s.accounts(ctx, root, rows)
		if err != nil {
			return ledger.Amount{}, err
		}
		s.by[root] = accounts
	}
	return s.by[root][account], nil
}

func (s spentBefore) accounts(
	ctx context.Context, root string, rows []store.ModelSpending,
) (accounts map[string]ledger.Amount, err error) {
	accounts = map[string]ledger.Amount{}
	if len(rows) == 0 {
		return accounts, nil
	}
	callers, err := s.tree.Parents(ctx, root)
	for _, row := range rows {
		account := row.Run
		for account != "" && !s.tree.GoesOn(account) {
			account = callers[account]
		}
		accounts[account] = accounts[account].Plus(ledger.Amount{Tokens: row.Tokens, Cost: row.Cost})
	}
	return accounts, err
}
