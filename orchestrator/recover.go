package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/inputs"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

// recovery takes in the runs that an earlier process did not finish. The runs of a tree share one call tree.
type recovery struct {
	service    *Service
	unfinished map[string]bool
	trees      map[string]*handoff.Tree
}

// newRecovery returns the recovery of what is left.
func newRecovery(s *Service, left []store.Run) *recovery {
	r := &recovery{service: s, unfinished: map[string]bool{}, trees: map[string]*handoff.Tree{}}
	for _, row := range left {
		r.unfinished[row.ID] = true
	}
	return r
}

// all makes a job of each run, which isn't driven yet. After an error they are left to the next process.
func (r *recovery) all(ctx context.Context, left []store.Run) ([]*job, error) {
	jobs := make([]*job, len(left))
	for i, row := range left {
		jobs[i] = r.recover(ctx, row)
	}
	err := r.restoreParts(ctx, jobs)
	if err != nil {
		for _, j := range jobs {
			j.letGo(err)
		}
	}
	return jobs, err
}

// recover makes a job of a run that an earlier process did not finish. It is driven when all
// of them are known, with what they have spent: budgets hold for whole trees.
//
// Recovery: recovery.recover, recovery.restore make a job of each unfinished run, with its unit's version, input, tree
// and what its kind saved, and job.attemptOnce calls Resume. What belongs to no run is removed beside it. The runs of a
// command end with it: Local.Sweep of the next command removes what is left.
func (r *recovery) recover(ctx context.Context, row store.Run) *job {
	s := r.service
	j, err := r.restore(ctx, row)
	s.jobs.restore(j)
	switch {
	case j.Record.Outcome != "": // only its cleaning up is left
		j.publishOutcome()
	case j.Record.State == api.Starting || j.Record.State == api.Running:
		j.permit = s.queue.Occupy(s.place(j))
	case j.turn == nil:
		j.permit = s.queue.Reenter(s.place(j))
	}
	j.unrecoverable = err
	s.Questions.Resume(j.ID) // as far as this process knows
	s.logger.Info("run recovered", "run", j.ID, "state", j.Record.State)
	j.asked = r.cancelRequested(ctx, j.ID) // before the run can come to an end without it
	return j
}

// restoreParts has the features take in what they stored of the runs that go on.
func (r *recovery) restoreParts(ctx context.Context, jobs []*job) error {
	for i, f := range r.service.opts.Features {
		restorer, ok := f.(feature.Restorer)
		if !ok {
			continue
		}
		var parts []feature.Part
		for _, j := range jobs {
			if j.unrecoverable == nil && j.Record.Outcome == "" {
				parts = append(parts, j.parts[i])
			}
		}
		if err := restorer.Restore(ctx, parts, r); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
	}
	return nil
}

// goOn drives a recovered run.
func (j *job) goOn() {
	go j.drive()
	if j.asked != nil {
		j.cancel(j.asked)
	}
}

// letGo leaves a run that was not driven to the next process.
func (j *job) letGo(why error) {
	j.release(why)
	j.log.Close()
	j.turn.Leave()
	j.loop.retire(j)
}

// restore makes a job of a stored run. An error is the reason why the run can't go on.
func (r *recovery) restore(ctx context.Context, row store.Run) (*job, error) {
	s := r.service
	record, corrupt := records.Decode(row)
	if corrupt != nil {
		record = records.OfCorruptRow(row)
		s.logger.Error("run can't be read", "run", row.ID, "bytes", len(row.Record), fault.LogAttr(corrupt))
	}
	restored := &run.Run{
		ID: row.ID, Unit: &unit.Unit{Name: record.Unit, Kind: unit.Kind(record.Kind)}, Record: record,
		Lineage: run.Lineage{Parent: record.Parent, Root: record.Root}, Handoffs: s.opts.Handoffs,
		Attempt: len(record.Attempts) + 1,
	}
	j := s.lead(ctx, restored, nil, nil)
	j.Units, j.People, j.execution = s.Units, s.Questions, unknownKind{}
	var p private
	if err := json.Unmarshal(row.Private, &p); err != nil {
		corrupt = errors.Join(corrupt, run.Corrupt(err))
	}
	j.terms, j.given, j.rewound = p.Terms, p.Given, p.Rewound
	restored.Saved, restored.Masking, restored.Start = p.Kind, p.Masking, p.Start
	restored.Lineage.Path, restored.Lineage.Deadline = p.Path, p.Deadline
	restored.Project, restored.Unattended = p.Project != "", p.Unattended
	kind, err := s.kinds.Of(restored.Unit)
	if err != nil {
		return j, err
	}
	if corrupt == nil {
		err = r.restoreUnit(ctx, restored, p.Timeout, row.Input)
	}
	turn, lost := s.Sessions.Reattach(ctx, restored, p.Session)
	j.turn, err = turn, errors.Join(err, lost)
	j.execution = executionOf(s.placer, kind, restored)
	if corrupt != nil {
		return j, corrupt
	}
	if err == nil && record.Outcome == "" {
		restored.Lineage.Tree, err = r.tree(ctx, record.Root)
	}
	return j, err
}

// restoreUnit gives a run its unit in the same version, and its input. One with an outcome
// needs neither, but for the limit of its log.
func (r *recovery) restoreUnit(ctx context.Context, to *run.Run, timeout time.Duration, input []byte) error {
	u, err := r.service.Units.Version(ctx, to.Record.Unit, to.Record.Version)
	if err == nil {
		to.Units = units.CallsOf(to.Units, u)
		to.Unit, to.Limits = u, run.Request{Unit: u, Timeout: timeout}.Limits(r.service.opts.Limits)
	}
	if to.Record.Outcome != "" {
		return nil // its unit may be gone
	}
	if err != nil {
		return err
	}
	to.Grants = u.Policy.Grants
	if refusal := u.Policy.Refusal; refusal != nil && to.Record.State != api.Running {
		return refusal // the operator's word came after it was accepted
	}
	if input, err = inputs.True(to, orEmpty(input)); err != nil {
		return err
	}
	to.Input.Payload, err = contract.Decode(input, max(r.service.opts.PayloadBytes, int64(len(input))))
	return err
}

// unknownKind is the execution of a run whose kind this process doesn't know.
type unknownKind struct{ run.Execution }

// Settle implements run.Execution.
func (unknownKind) Settle(context.Context) {}

// Remove implements run.Execution.
func (unknownKind) Remove(context.Context) error { return nil }

// Release implements run.Execution.
func (unknownKind) Release() {}

// tree returns the call tree of a root.
func (r *recovery) tree(ctx context.Context, root string) (*handoff.Tree, error) {
	if tree := r.trees[root]; tree != nil {
		return tree, nil
	}
	tree, err := r.recoverTree(ctx, root)
	if err == nil {
		r.trees[root] = tree
	}
	return tree, err
}

// recoverTree counts the calls of a tree that began in an earlier process.
func (r *recovery) recoverTree(ctx context.Context, root string) (*handoff.Tree, error) {
	parents, err := r.Parents(ctx, root)
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

// Parents implements feature.Ancestry.
func (r *recovery) Parents(ctx context.Context, root string) (map[string]string, error) {
	parents := map[string]string{}
	filter := store.Filter{Root: root, Limit: 1000}
	for {
		page, err := r.service.store.Runs.List(ctx, filter)
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

// GoesOn implements feature.Ancestry.
func (r *recovery) GoesOn(id string) bool { return r.unfinished[id] }

// cancelRequested returns the stored cancel request of a run as the cause of its end, or nil
// if there is none.
func (r *recovery) cancelRequested(ctx context.Context, id string) error {
	const page = 200
	var after int64
	for {
		events, err := r.service.store.Events.List(ctx, id, after, page)
		if err != nil || len(events) == 0 {
			return nil //nolint:nilerr // who wants it cancelled can say so again
		}
		for _, event := range events {
			after = event.Seq
			data, _ := records.EventOf(event).Decode() // what can't be read asks for nothing
			if request, ok := data.(api.CancelEvent); ok {
				return run.Cancelled(request.Reason)
			}
		}
	}
}
