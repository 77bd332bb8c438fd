// Package retention removes what a server need not keep any more: runs that ended by their age and size, sessions,
// versions of units and their images.
//
// It must not know how a run is led, or HTTP.
//
// Its Go API may change with every release: see docs/stability.md.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
)

// Options are what a Retention works with.
type Options struct {
	Home     string // on the disk whose room counts
	Runs     string // where each run has its directory
	Store    *store.Store
	Units    *units.Catalogue
	Sessions *turns.Sessions
	Kinds    run.Kinds
	// InUse returns the versions of units that runs and sessions go on with, as name@version, and the units of runs.
	InUse func() (versions map[string]bool, units []*unit.Unit)
	// Gone waits until this process has nothing more to do with a run.
	Gone func(ctx context.Context, id string) error
	// Undamaged returns the fault that says how the store is damaged, or nil.
	Undamaged func(ctx context.Context) error

	Age time.Duration // of runs that ended; 0 keeps them
	// Ages are those of the runs of teams that have one of their own.
	Ages        func() map[string]time.Duration
	Bytes       int64         // of all that is kept of them; 0 is no bound
	Interval    time.Duration // between two rounds
	MinFreeDisk int64         // below it the database isn't compacted

	Opened time.Time // when the server was
	Logger *slog.Logger
}

// Retention removes what need not be kept. It is safe for concurrent use once it runs.
type Retention struct {
	opts Options
	held time.Time // until then no run is too old; see HoldAge
}

// New returns a Retention, which removes nothing by itself.
func New(opts Options) *Retention { return &Retention{opts: opts} }

// Bounds returns how old the runs that ended may get, and how many bytes all of them may take; 0 is no bound.
func (r *Retention) Bounds() (age time.Duration, bytes int64) { return r.opts.Age, r.opts.Bytes }

// pruneBatch is how many runs are removed at once.
const pruneBatch = 200

// Prune removes finished runs of whom the client of ctx sees, and everything that is kept of them, the oldest first, or
// images.
// Where no size bounds it, closed sessions of that age go as well: they hold nothing but their row.
func (r *Retention) Prune(ctx context.Context, opts api.PruneOptions) (api.PruneReport, error) {
	var before time.Time
	unused := time.Now()
	if opts.OlderThan > 0 {
		before = unused.Add(-opts.OlderThan)
		unused = before
	}
	report, err := r.prune(ctx, opts, store.Old{Before: before, Owned: store.OwnedFor(ctx)})
	if err == nil && !opts.DryRun {
		noun, count := "runs", report.Runs
		if opts.Images {
			noun, count = "images", *report.Images
		}
		err = r.opts.Store.Audits.Did(ctx, store.Audited{
			Team: access.OwnerOf(ctx).Team, Verb: "prune", Noun: noun, Detail: fmt.Sprintf("%d of them", count),
		})
	}
	if err != nil || opts.Images || opts.MaxBytes > 0 {
		return report, err
	}
	forget := r.opts.Store.Sessions.Forget
	if opts.DryRun {
		forget = r.opts.Store.Sessions.Spent
	}
	report.Sessions, err = forget(ctx, store.OwnedFor(ctx), unused)
	return report, err
}

// prune removes old runs. Of a damaged store nothing is removed: it doesn't say what there is.
func (r *Retention) prune(
	ctx context.Context, opts api.PruneOptions, old store.Old,
) (report api.PruneReport, err error) {
	report = api.PruneReport{DryRun: opts.DryRun}
	if err := r.opts.Undamaged(ctx); err != nil {
		return report, err
	}
	if opts.Images && !access.ReachOf(ctx).All {
		return report, fault.New(fault.Forbidden, "the images are the whole server's").
			WithHint("prune the runs of your team; a token with the scope admin and without a team may remove images")
	}
	if opts.Images {
		removed, err := r.pruneImages(ctx, opts.DryRun)
		report.Images = &removed
		return report, err
	}
	p := pruning{of: r, opts: opts, report: &report, old: old}
	p.kept, err = r.keptOf(ctx)
	if err != nil {
		return report, err
	}
	err = p.run(ctx)
	if report.Runs > 0 {
		r.opts.Logger.Info("runs pruned", "runs", report.Runs, "bytes", report.Bytes, "dry_run", opts.DryRun)
	}
	if report.Runs > 0 && !opts.DryRun {
		r.giveBack(ctx)
	}
	return report, err
}

// keptOf returns how many bytes are kept of what the client of ctx sees.
func (r *Retention) keptOf(ctx context.Context) (int64, error) {
	if !access.ReachOf(ctx).All {
		return r.opts.Store.Runs.BytesOf(ctx, access.ReachOf(ctx).Teams...)
	}
	totals, err := r.opts.Store.Runs.Totals(ctx)
	return totals.DiskBytes, err
}

// Compact has a database of an older version give room back from now on, if there is enough of it.
func (r *Retention) Compact() {
	if free, err := runtime.FreeBytes(r.opts.Home); err == nil {
		r.opts.Store.Compact(context.Background(), free-r.opts.MinFreeDisk)
	}
}

// giveBack has the database give the pages of what was removed back to its disk. Where it can't, it
// uses them again.
func (r *Retention) giveBack(ctx context.Context) {
	bytes, err := r.opts.Store.GiveBack(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		r.opts.Logger.Warn("database keeps the room of what was removed", fault.LogAttr(err))
	case bytes > 0:
		r.opts.Logger.Info("database has given room back", "bytes", bytes)
	}
}

// pruning is one pass over the finished runs.
type pruning struct {
	of     *Retention
	opts   api.PruneOptions
	old    store.Old
	kept   int64
	report *api.PruneReport
}

func (p *pruning) run(ctx context.Context) error {
	p.old.Limit = pruneBatch
	for {
		rows, err := p.of.opts.Store.Runs.Oldest(ctx, p.old)
		if err != nil {
			return err
		}
		chosen := p.choose(rows)
		if len(chosen) == 0 {
			return nil
		}
		p.old.After = rows[len(chosen)-1]
		if !p.opts.DryRun {
			if err := p.of.removeRuns(ctx, p.of.opts.Store.Runs.Delete, chosen); err != nil {
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

// removeRuns deletes the rows before the files: a later sweep removes files without a run, but a
// run without its files would be wrong.
func (r *Retention) removeRuns(
	ctx context.Context, rows func(ctx context.Context, ids ...string) error, ids []string,
) error {
	if err := rows(ctx, ids...); err != nil {
		return err
	}
	var failures []error
	for _, id := range ids {
		failures = append(failures, safefs.RemoveTree(filepath.Join(r.opts.Runs, id)))
	}
	return errors.Join(failures...)
}

// Run prunes runs by the operator's settings, and versions of units that no run
// or unit needs, with their images, until ctx ends.
func (r *Retention) Run(ctx context.Context) {
	ticker := time.NewTicker(r.opts.Interval)
	defer ticker.Stop()
	for {
		if err := r.Sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.opts.Logger.Warn("sweep failed", fault.LogAttr(err))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// usageAge is how long it is kept what was used.
const usageAge = 400 * 24 * time.Hour

// Sweep is one round of Run.
func (r *Retention) Sweep(ctx context.Context, now time.Time) error {
	if err := r.opts.Undamaged(ctx); err != nil {
		return err
	}
	var failures []error
	if now.After(r.held) {
		failures = append(failures, r.pruneByAge(ctx, r.ages(now)))
	}
	failures = append(failures, r.pruneBySize(ctx))
	needed, _ := r.opts.InUse()
	err := r.opts.Units.Prune(ctx, func(name, version string) bool { return needed[name+"@"+version] })
	_, failed := r.pruneImages(ctx, false)
	used := r.opts.Store.Usages.Trim(ctx, now.Add(-usageAge))
	return errors.Join(append(failures, err, failed, used, r.opts.Store.Feed.Trim(ctx))...)
}

// pruneImages removes the images that no unit and no live run needs, and returns how many they
// are.
func (r *Retention) pruneImages(ctx context.Context, dryRun bool) (total int, err error) {
	for kind := range r.opts.Kinds.Each() {
		pruner, ok := kind.(run.ImagePruner)
		if !ok {
			continue
		}
		removed, failed := pruner.PruneImages(ctx, func() ([]*unit.Unit, error) { return r.UnitsInUse(ctx) }, dryRun)
		total, err = total+removed, errors.Join(err, failed)
	}
	if total > 0 {
		r.opts.Logger.Info("images pruned", "count", total, "dry_run", dryRun)
	}
	return total, err
}

// UnitsInUse returns the units that can be run, and those of live runs, in their versions.
func (r *Retention) UnitsInUse(ctx context.Context) ([]*unit.Unit, error) {
	_, all := r.opts.InUse()
	usable, err := r.opts.Units.Usable(access.WithServer(ctx))
	return append(all, usable...), err
}
