package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
)

// pruneBatch is how many runs are removed at once.
const pruneBatch = 200

// Prune removes finished runs and everything that is kept of them, the oldest first, or images.
// Where no size bounds it, closed sessions of that age go as well: they hold nothing but their row.
func (s *Service) Prune(ctx context.Context, opts api.PruneOptions) (api.PruneReport, error) {
	var before time.Time
	unused := time.Now()
	if opts.OlderThan > 0 {
		before = unused.Add(-opts.OlderThan)
		unused = before
	}
	report, err := s.prune(ctx, opts, before)
	if err != nil || opts.Images || opts.MaxBytes > 0 {
		return report, err
	}
	forget := s.store.ForgetSessions
	if opts.DryRun {
		forget = s.store.SpentSessions
	}
	report.Sessions, err = forget(ctx, unused)
	return report, err
}

// prune removes runs that ended before a time, which is zero for any. Of a damaged store
// nothing is removed: it doesn't say what there is.
func (s *Service) prune(ctx context.Context, opts api.PruneOptions, before time.Time) (api.PruneReport, error) {
	report := api.PruneReport{DryRun: opts.DryRun}
	if err := s.undamaged(ctx); err != nil {
		return report, err
	}
	if opts.Images {
		removed, err := s.pruneImages(ctx, opts.DryRun)
		report.Images = &removed
		return report, err
	}
	totals, err := s.store.Totals(ctx)
	if err != nil {
		return report, err
	}
	p := pruning{service: s, opts: opts, kept: totals.DiskBytes, report: &report}
	p.old.Before = before
	err = p.run(ctx)
	if report.Runs > 0 {
		s.logger.Info("runs pruned", "runs", report.Runs, "bytes", report.Bytes, "dry_run", opts.DryRun)
	}
	if report.Runs > 0 && !opts.DryRun {
		s.giveBack(ctx)
	}
	return report, err
}

// compactStore has a database of an older version give room back from now on, if there is enough of it.
func (s *Service) compactStore() {
	if free, err := runtime.FreeBytes(s.opts.Home); err == nil {
		s.store.Compact(context.Background(), free-s.opts.MinFreeDisk)
	}
}

// giveBack has the database give the pages of what was removed back to its disk. Where it can't, it
// uses them again.
func (s *Service) giveBack(ctx context.Context) {
	bytes, err := s.store.GiveBack(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		s.logger.Warn("database keeps the room of what was removed", fault.LogAttr(err))
	case bytes > 0:
		s.logger.Info("database has given room back", "bytes", bytes)
	}
}

// pruning is one pass over the finished runs.
type pruning struct {
	service *Service
	opts    api.PruneOptions
	old     store.Old
	kept    int64
	report  *api.PruneReport
}

func (p *pruning) run(ctx context.Context) error {
	p.old.Limit = pruneBatch
	for {
		rows, err := p.service.store.Oldest(ctx, p.old)
		if err != nil {
			return err
		}
		chosen := p.choose(rows)
		if len(chosen) == 0 {
			return nil
		}
		p.old.After = rows[len(chosen)-1]
		if !p.opts.DryRun {
			if err := p.remove(ctx, chosen); err != nil {
				return err
			}
		}
		if len(chosen) < len(rows) {
			return nil
		}
	}
}

// choose returns the runs to remove, so that the rest fits the bounds.
func (p *pruning) choose(rows []store.Run) []string {
	var ids []string
	for _, row := range rows {
		if p.opts.MaxBytes > 0 && p.kept <= p.opts.MaxBytes {
			break
		}
		ids = append(ids, row.ID)
		p.kept -= row.DiskBytes
		p.report.Runs++
		p.report.Bytes += row.DiskBytes
	}
	return ids
}

// remove deletes the rows before the files: a later sweep removes files without a run, but a
// run without its files would be wrong.
func (p *pruning) remove(ctx context.Context, ids []string) error {
	if err := p.service.store.Delete(ctx, ids...); err != nil {
		return err
	}
	var failures []error
	for _, id := range ids {
		failures = append(failures, safefs.RemoveTree(p.service.runPath(id)))
	}
	return errors.Join(failures...)
}

// pruneRegularly prunes runs by the operator's settings, and versions of units that no run
// or unit needs, with their images, until ctx ends.
func (s *Service) pruneRegularly(ctx context.Context) {
	ticker := time.NewTicker(s.opts.SweepInterval)
	defer ticker.Stop()
	for {
		if err := s.pruneOnce(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.logger.Warn("sweep failed", fault.LogAttr(err))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) pruneOnce(ctx context.Context, now time.Time) error {
	if err := s.undamaged(ctx); err != nil {
		return err
	}
	var failures []error
	if s.opts.RetentionAge > 0 && now.After(s.ageHeld) {
		before := s.ages(now).Add(-s.opts.RetentionAge)
		_, err := s.prune(ctx, api.PruneOptions{}, before)
		failures = append(failures, err, s.forgetSessions(ctx, before))
	}
	if s.opts.RetentionSize > 0 {
		_, err := s.Prune(ctx, api.PruneOptions{MaxBytes: s.opts.RetentionSize})
		failures = append(failures, err)
	}
	needed := s.neededVersions()
	_, err := s.units.Prune(ctx, func(name, version string) bool { return needed[name+"@"+version] })
	_, failed := s.pruneImages(ctx, false)
	return errors.Join(append(failures, err, failed)...)
}

// neededVersions returns the unit versions of the live runs.
func (s *Service) neededVersions() map[string]bool {
	needed := map[string]bool{}
	for _, known := range s.sessions.All() {
		row := known.Row()
		needed[row.Unit+"@"+row.Version] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.live {
		needed[j.Record.Unit+"@"+j.Record.Version] = true
		for name, version := range j.pinned() {
			needed[name+"@"+version] = true
		}
	}
	return needed
}
