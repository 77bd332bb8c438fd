package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// recover makes a job of a run that an earlier process did not finish. It is driven when all
// of them are known, with what they have spent: budgets hold for whole trees.
func (s *Service) recover(ctx context.Context, row store.Run, trees treeCache) *job {
	j, err := s.restore(ctx, row, trees)
	s.mu.Lock()
	s.live[j.ID] = j
	s.jobs.Add(1)
	s.mu.Unlock()
	switch {
	case j.Record.Outcome != "": // only its cleaning up is left
		j.publishOutcome()
	case j.Record.State == api.Starting || j.Record.State == api.Running:
		j.permit = s.queue.Occupy(s.place(j))
	case j.session == nil:
		j.permit = s.queue.Reenter(s.place(j))
	}
	j.unrecoverable, j.recovered = err, true
	j.asks.Store(true) // as far as this process knows
	if err == nil && j.Record.Outcome == "" {
		j.models.Restore(ctx, s.store, trees.spentOn)
	}
	s.logger.Info("run recovered", "run", j.ID, "state", j.Record.State)
	j.asked = s.cancelRequested(ctx, j.ID) // before the run can come to an end without it
	return j
}

// goOn drives a recovered run.
func (j *job) goOn() {
	go j.drive()
	if j.asked != nil {
		j.cancel(j.asked)
	}
}

// restore makes a job of a stored run. An error is the reason why the run can't go on.
func (s *Service) restore(ctx context.Context, row store.Run, trees treeCache) (*job, error) {
	record, wrecked := recordOf(row)
	if wrecked != nil {
		record = openWreck(row)
		s.logger.Error("run can't be read", "run", row.ID, "bytes", len(row.Record), fault.LogAttr(wrecked))
	}
	r := &run.Run{
		ID: row.ID, Unit: &unit.Unit{Name: record.Unit, Kind: unit.Kind(record.Kind)}, Record: record,
		Lineage: run.Lineage{Parent: record.Parent, Root: record.Root}, Handoffs: s.opts.Handoffs,
		Attempt: len(record.Attempts) + 1,
	}
	j := s.lead(r, nil, models.Source{})
	j.find, j.execution = s.units.Get, unknownKind{}
	j.joinSchedule()
	j.pins.versions = record.Versions
	if err := json.Unmarshal(row.Private, &j.private); err != nil {
		wrecked = errors.Join(wrecked, undecodable(err))
	}
	r.Saved, r.Masking, r.Start = j.private.Kind, j.private.Masking, j.private.Start
	j.reached.Restore(record.Egress)
	r.Lineage.Path, r.Lineage.Deadline = j.private.Path, j.private.Deadline
	r.Project = j.private.Project != ""
	kind, err := s.kinds.Of(r.Unit)
	if err != nil {
		return j, err
	}
	if wrecked == nil {
		err = s.restoreUnit(ctx, r, j.private.Timeout, row.Input)
	}
	err = errors.Join(err, s.reseat(ctx, j))
	j.execution = kind.Execution(r)
	if wrecked != nil {
		return j, wrecked
	}
	if err == nil && record.Outcome == "" {
		r.Lineage.Tree, err = trees.of(ctx, record.Root)
	}
	return j, err
}

// restoreUnit gives a run its unit in the same version, and its input. One with an outcome
// needs neither, but for the limit of its log.
func (s *Service) restoreUnit(ctx context.Context, r *run.Run, timeout time.Duration, input []byte) error {
	u, err := s.units.Version(ctx, r.Record.Unit, r.Record.Version)
	if err == nil {
		r.Unit, r.Limits = u, run.Request{Unit: u, Timeout: timeout}.Limits(s.opts.Limits)
	}
	if r.Record.Outcome != "" {
		return nil // its unit may be gone
	}
	if err != nil {
		return err
	}
	r.Grants = u.Policy.Grants
	if refusal := u.Policy.Refusal; refusal != nil && r.Record.State != api.Running {
		return refusal // the operator's word came after it was accepted
	}
	if input, err = acceptedInput(r, input); err != nil {
		return err
	}
	r.Input.Payload, err = contract.Decode(input, max(s.opts.PayloadBytes, int64(len(input))))
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

// treeCache holds the call trees of the recovered runs, so that the runs of a tree share one.
type treeCache struct {
	service    *Service
	unfinished map[string]bool
	trees      map[string]*handoff.Tree
	spent      map[string]map[string]ledger.Amount // on models, by root and account
}

func (f treeCache) of(ctx context.Context, root string) (*handoff.Tree, error) {
	if tree := f.trees[root]; tree != nil {
		return tree, nil
	}
	tree, err := f.service.recoverTree(ctx, root)
	if err == nil {
		f.trees[root] = tree
	}
	return tree, err
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

// cancelRequested returns the stored cancel request of a run as the cause of its end, or nil
// if there is none.
func (s *Service) cancelRequested(ctx context.Context, id string) error {
	var after int64
	for {
		events, err := s.store.Events(ctx, id, after, eventPage)
		if err != nil || len(events) == 0 {
			return nil //nolint:nilerr // who wants it cancelled can say so again
		}
		for _, event := range events {
			after = event.Seq
			data, _ := eventOf(event).Decode() // what can't be read asks for nothing
			if request, ok := data.(api.CancelEvent); ok {
				return run.Cancelled(request.Reason)
			}
		}
	}
}

// sweepStrays removes what belongs to no run: a process left it that died between two steps.
func (s *Service) sweepStrays(ctx context.Context) {
	if err := errors.Join(s.removeUnknownFiles(ctx), s.sessions.RemoveStrays(),
		s.schedules.RemoveStrays(ctx)); err != nil {
		s.logger.Warn("stray files not removed", fault.LogAttr(err))
	}
	for kind := range s.kinds.Each() {
		if sweeper, ok := kind.(run.Sweeper); ok {
			if err := sweeper.SweepStrays(ctx, s.isLive); err != nil && ctx.Err() == nil {
				s.logger.Warn("stray containers not removed", fault.LogAttr(err))
			}
		}
	}
}

// removeUnknownFiles removes the directories that no stored run has. It works in portions.
func (s *Service) removeUnknownFiles(ctx context.Context) error {
	const portion = 500
	dir, err := os.Open(s.path("runs"))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // read only
	for ctx.Err() == nil {
		names, err := dir.Readdirnames(portion)
		if len(names) == 0 {
			return ignoreEOF(err)
		}
		known, err := s.store.Known(ctx, names)
		if err != nil {
			return err
		}
		for _, name := range names {
			if known[name] || s.isLive(name) || s.isYoung(name) {
				continue
			}
			if err := safefs.RemoveTree(filepath.Join(s.path("runs"), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// isYoung reports whether a directory may belong to a run that is being accepted.
func (s *Service) isYoung(name string) bool {
	info, err := os.Stat(s.runPath(name))
	return err == nil && time.Since(info.ModTime()) < time.Minute && !info.ModTime().Before(s.opened)
}
