package models

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Books are what an earlier process wrote of its calls.
type Books interface {
	List(ctx context.Context, run string, after int64, limit int) ([]store.ModelCall, error)
	Spending(ctx context.Context, root string) ([]store.ModelSpending, error)
	// SettleAll charges in full for what no process will settle any more.
	SettleAll(ctx context.Context) error
}

// restore opens the account of a recovered run. It counts what an earlier process spent on
// behalf of the run, and of those below it that have ended: the latter as spent says, by the
// root of the tree and the run's id.
func (a *account) restore(
	ctx context.Context, from Books, spent func(ctx context.Context, root, id string) (ledger.Amount, error),
) {
	a.Open()
	a.answered.Store(safefs.TreeBytes(filepath.Join(a.run.Dir, answersDir)))
	listed := map[string]bool{}
	err := a.transcript.restore(func(line exchange) {
		listed[line.ID] = true
		_ = a.spending.lists(line.ModelCall) // it is
	})
	if err != nil {
		a.logger.Warn("model calls of an earlier process can't be read", "run", a.run.ID, fault.LogAttr(err))
	}
	amount, err := spent(ctx, a.run.Lineage.Root, a.run.ID)
	if err == nil {
		a.ledger.Restore(a.run.ID, amount)
		err = a.restoreSpending(ctx, from, listed)
	}
	if err != nil {
		a.logger.Warn("spending on models not restored", "run", a.run.ID, fault.LogAttr(err))
	}
}

// restoreSpending reads the books of a run. Calls that its process didn't live to list are
// listed now.
func (a *account) restoreSpending(ctx context.Context, from Books, listed map[string]bool) error {
	cutOff := map[string]*api.ModelCall{}
	var order []string
	rows, err := rowsOf(ctx, from, a.run.ID)
	for _, row := range rows {
		var b entry
		if err := json.Unmarshal(row.Data, &b); err != nil {
			return fmt.Errorf("what is stored of this run can't be read: %w", err)
		}
		a.spending.add(b, row)
		if listed[b.ID] {
			continue
		}
		if cutOff[b.ID] == nil {
			cutOff[b.ID], order = &api.ModelCall{At: row.At}, append(order, b.ID)
		}
		join(cutOff[b.ID], charged(b, row))
	}
	for _, id := range order {
		a.list(*cutOff[id], gateway.Exchange{Call: gateway.Call{ID: id}})
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

// rowsOf returns all rows of a run's books.
func rowsOf(ctx context.Context, from Books, run string) (rows []store.ModelCall, err error) {
	for after := int64(0); ; after = rows[len(rows)-1].N {
		some, err := from.List(ctx, run, after, 0)
		if rows = append(rows, some...); err != nil || len(some) == 0 {
			return rows, err
		}
	}
}
