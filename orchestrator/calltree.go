package orchestrator

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// cancelCalls cancels all runs that a run has called, and returns their jobs.
func (l *loop) cancelCalls(caller string, cause error) []*job {
	calls := l.childrenOf(caller)
	for _, call := range calls {
		call.cancel(cause)
	}
	return calls
}

// endCalls cancels all runs that a run has called. It returns when each has its outcome, or
// is left to the next process.
func (l *loop) endCalls(caller string, cause error) {
	for _, call := range l.cancelCalls(caller, cause) {
		select {
		case <-call.ended:
		case <-call.gone:
		}
	}
}

// childrenOf returns the jobs of the runs that a run has called.
func (l *loop) childrenOf(id string) []*job {
	return l.jobsOf(func(j *job) bool { return j.Lineage.Parent == id })
}

// callsOf lists the runs that a run asked for, as its record shows them.
func (l *loop) callsOf(ctx context.Context, id string) ([]api.Call, error) {
	const most = 1000
	var calls []api.Call
	err := l.eachRun(ctx, store.Filter{Parent: id}, most,
		func(row store.Run) { calls = append(calls, callOf(shownOf(row))) })
	sortCalls(calls)
	return calls, err
}

// eachRun goes through the newest runs that a filter selects, at most so many.
func (l *loop) eachRun(ctx context.Context, f store.Filter, most int, do func(store.Run)) error {
	for left := most; left > 0; {
		f.Limit = min(left, eventPage)
		page, err := l.journal.Runs(ctx, f)
		if err != nil {
			return err
		}
		for _, row := range page.Runs {
			do(row)
		}
		left -= len(page.Runs)
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil
		}
	}
	return nil
}

// tellCaller notes the end of a call among the events of the run that made it.
func (l *loop) tellCaller(j *job) {
	if caller := l.job(j.Lineage.Parent); caller != nil {
		caller.append(newEvent(time.Now().UTC(), callOf(j.Record)))
	}
}

// noteCalls puts the calls of a run into its record, before the record is final.
func (j *job) noteCalls(ctx context.Context) {
	if j.loop.conducts(j.Unit) {
		j.noteSteps(ctx)
		return
	}
	if len(j.Grants) == 0 {
		return
	}
	calls, err := j.loop.callsOf(context.WithoutCancel(ctx), j.ID)
	if err != nil {
		j.loop.logger.Warn("calls not in the record", "run", j.ID, fault.LogAttr(err))
	}
	j.Record.Calls = calls
}

// recoverTree counts the calls of a tree that began in an earlier process.
func (l *loop) recoverTree(ctx context.Context, root string) (*handoff.Tree, error) {
	parents, err := l.parentsIn(ctx, root)
	if err != nil {
		return nil, err
	}
	below := map[string]int{}
	for _, parent := range parents {
		for run := parent; run != ""; run = parents[run] {
			below[run]++
		}
	}
	tree := handoff.NewTree()
	for run, calls := range below {
		tree.Restore(handoff.BudgetCalls, run, int64(calls))
	}
	return tree, nil
}

// parentsIn returns the parent of each run of a tree.
func (l *loop) parentsIn(ctx context.Context, root string) (map[string]string, error) {
	parents := map[string]string{}
	filter := store.Filter{Root: root, Limit: 1000}
	for {
		page, err := l.journal.Runs(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Runs {
			parents[row.ID] = row.Parent
		}
		if filter.Cursor = page.Next; filter.Cursor == "" {
			return parents, nil
		}
	}
}

// cancelOrphans cancels calls whose caller ended while nobody was there to do it.
func (l *loop) cancelOrphans() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range l.live {
		if parent := j.Lineage.Parent; parent != "" && (l.live[parent] == nil || l.live[parent].hasEnded()) {
			j.cancel(run.ErrCallerEnded)
		}
	}
}
