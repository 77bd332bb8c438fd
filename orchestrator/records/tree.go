package records

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// maxTree is how many runs of a tree are read: each takes 0.4 KB of an answer.
const maxTree = 10_000

// Tree returns a run with all runs below it. Errors are those of Get.
func (r *Reader) Tree(ctx context.Context, id string) (api.Tree, error) {
	row, err := r.opts.Rows.Get(ctx, id)
	if err != nil {
		return api.Tree{}, err
	}
	if !sees(ctx, row) {
		return api.Tree{}, store.UnknownRun(id)
	}
	rows, all, err := r.opts.Rows.Tree(ctx, row.Root, maxTree)
	if err != nil {
		return api.Tree{}, err
	}
	tree := treeOf(row, childrenOf(rows, row))
	tree.Omitted = all - int64(len(rows))
	return tree, nil
}

// childrenOf sorts the runs of a tree by who asked for them. Of one whose caller is gone already, the root is said to
// have asked for it.
func childrenOf(rows []store.Run, top store.Run) map[string][]store.Run {
	there := map[string]bool{}
	for _, row := range rows {
		there[row.ID] = true
	}
	children := map[string][]store.Run{}
	for _, row := range rows {
		caller := row.Parent
		if !there[caller] {
			caller = row.Root
		}
		if row.ID != row.Root && row.ID != top.ID {
			children[caller] = append(children[caller], row)
		}
	}
	return children
}

// treeOf is the tree below a run.
func treeOf(row store.Run, children map[string][]store.Run) api.Tree {
	state := api.State(row.State)
	tree := api.Tree{
		ID: row.ID, Unit: row.Unit, Kind: row.Kind, Step: row.Step, State: state, Status: state.Status(),
		Outcome: api.Outcome(row.Outcome), ErrorKind: row.ErrorKind,
		CreatedAt: row.CreatedAt, StartedAt: api.TimeOrNil(row.StartedAt), FinishedAt: api.TimeOrNil(row.FinishedAt),
		Models: charged(row.Tokens, api.Cost(row.Cost)), Runs: 1,
	}
	tokens, cost := row.Tokens, api.Cost(row.Cost)
	for _, child := range children[row.ID] {
		below := treeOf(child, children)
		tree.Runs += below.Runs
		if below.Total != nil {
			tokens, cost = tokens+below.Total.Charged, cost+below.Total.Cost
		}
		tree.Calls = append(tree.Calls, below)
	}
	tree.Total = charged(tokens, cost)
	return tree
}

func charged(tokens int64, cost api.Cost) *api.ModelTotal {
	if tokens == 0 && cost == 0 {
		return nil
	}
	return &api.ModelTotal{Charged: tokens, Cost: cost}
}
