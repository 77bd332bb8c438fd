package orchestrator

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/gateway"
	"github.com/agent-on-demand/aod/gateway/ledger"
	"github.com/agent-on-demand/aod/safefs"
	"github.com/agent-on-demand/aod/store"
)

// restoreModels counts what an earlier process spent on behalf of the run, and of those below
// it that have ended.
func (j *job) restoreModels(ctx context.Context, trees treeCache) {
	j.openAccount()
	j.answered.Store(safefs.TreeBytes(filepath.Join(j.Dir, answersDir)))
	listed := map[string]bool{}
	err := j.transcript.restore(func(line exchange) {
		listed[line.ID] = true
		_ = j.spending.lists(line.ModelCall) // it is
	})
	if err != nil {
		j.loop.logger.Warn("model calls of an earlier process can't be read", "run", j.ID, fault.LogAttr(err))
	}
	spent, err := trees.spentOn(ctx, j.Lineage.Root, j.ID)
	if err == nil {
		j.loop.ledger.Restore(j.ID, spent)
		err = j.restoreSpending(ctx, listed)
	}
	if err != nil {
		j.loop.logger.Warn("spending on models not restored", "run", j.ID, fault.LogAttr(err))
	}
}

// restoreSpending reads the books of a run. Calls that its process didn't live to list are
// listed now.
func (j *job) restoreSpending(ctx context.Context, listed map[string]bool) error {
	cutOff := map[string]*api.ModelCall{}
	var order []string
	rows, err := j.bookedCalls(ctx)
	for _, row := range rows {
		var b booking
		if err := json.Unmarshal(row.Data, &b); err != nil {
			return undecodable(err)
		}
		j.spending.add(b, row)
		if listed[b.ID] {
			continue
		}
		if cutOff[b.ID] == nil {
			cutOff[b.ID], order = &api.ModelCall{At: row.At}, append(order, b.ID)
		}
		join(cutOff[b.ID], charged(b, row))
	}
	for _, id := range order {
		j.list(*cutOff[id], gateway.Exchange{Call: gateway.Call{ID: id}})
	}
	return err
}

// join adds an attempt to its call.
func join(call *api.ModelCall, attempt api.ModelCall) {
	attempt.At, attempt.Attempts = call.At, call.Attempts+1
	attempt.Charged += call.Charged
	attempt.Cost += call.Cost
	attempt.Estimated = attempt.Estimated || call.Estimated
	*call = attempt
}

// bookedCalls returns all rows of the run's books.
func (j *job) bookedCalls(ctx context.Context) (rows []store.ModelCall, err error) {
	for after := int64(0); ; after = rows[len(rows)-1].N {
		some, err := j.loop.store.ModelCalls(ctx, j.ID, after, 0)
		if rows = append(rows, some...); err != nil || len(some) == 0 {
			return rows, err
		}
	}
}

// spentOn returns what counts on the account of a recovered run alone: its own, and that of
// runs below it which have ended. What recovered runs below it spent comes with theirs.
func (f treeCache) spentOn(ctx context.Context, root, account string) (ledger.Amount, error) {
	if f.spent[root] == nil {
		spent, err := f.spentIn(ctx, root)
		if err != nil {
			return ledger.Amount{}, err
		}
		f.spent[root] = spent
	}
	return f.spent[root][account], nil
}

func (f treeCache) spentIn(ctx context.Context, root string) (map[string]ledger.Amount, error) {
	accounts := map[string]ledger.Amount{}
	rows, err := f.service.store.ModelSpending(ctx, root)
	if err != nil || len(rows) == 0 {
		return accounts, err
	}
	parents, err := f.service.parentsIn(ctx, root)
	for _, row := range rows {
		account := row.Run
		for account != "" && !f.unfinished[account] {
			account = parents[account]
		}
		accounts[account] = accounts[account].Plus(ledger.Amount{Tokens: row.Tokens, Cost: row.Cost})
	}
	return accounts, err
}
