package retention

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Remove removes a run that ended, all that it called, and everything that is kept of them, but for what was used and
// the audit. The error is a NotFound fault for a run that the client of ctx may not know of, and a Conflict for one
// that goes on, that another one called, or that is a turn of an open session.
func (r *Retention) Remove(ctx context.Context, id string) (removed api.RemovedRun, err error) {
	removed = api.RemovedRun{ID: id, HeldBy: []string{}}
	if err := r.opts.Undamaged(ctx); err != nil {
		return removed, err
	}
	row, err := r.opts.Store.Runs.Get(ctx, id)
	if err == nil && !access.Sees(ctx, access.Owner{Team: row.Team, By: row.MadeBy}) {
		err = store.UnknownRun(id)
	}
	if err == nil && row.Outcome != "" {
		err = r.cleanedUp(ctx, &row)
	}
	if err == nil {
		err = r.checkRemoval(ctx, row)
	}
	if err != nil {
		return removed, err
	}
	if held, err := r.opts.Store.Runs.RerunsOf(ctx, id, store.OwnedFor(ctx)); err != nil {
		return removed, err
	} else if held != nil {
		removed.HeldBy = held
	}
	if err := r.removeTree(ctx, row, &removed); err != nil {
		return removed, err
	}
	r.opts.Logger.Info("run removed", "run", id, "runs", removed.Runs, "bytes", removed.Bytes)
	return removed, r.opts.Store.Scrub(ctx)
}

// cleanedUp waits until a run that has its outcome is cleaned up, too, and reads it again then.
func (r *Retention) cleanedUp(ctx context.Context, row *store.Run) (err error) {
	if row.Finished {
		return nil
	}
	if err = r.opts.Gone(ctx, row.ID); err == nil {
		*row, err = r.opts.Store.Runs.Get(ctx, row.ID)
	}
	return err
}

// checkRemoval returns a Conflict fault for a run that can't be removed alone.
func (r *Retention) checkRemoval(ctx context.Context, row store.Run) error {
	switch {
	case !row.Finished:
		return fault.New(fault.Conflict, "run %s goes on", row.ID).WithHint("cancel it, or wait for its end")
	case row.Parent != "":
		return fault.New(fault.Conflict, "run %s is a call of another one", row.ID).
			WithHint("remove the run at the top of its tree, %s", row.Root)
	case row.Session == "":
		return nil
	}
	session, err := r.opts.Store.Sessions.Get(ctx, row.Session)
	if fault.Is(err, fault.NotFound) || err == nil && session.Closed {
		return nil
	}
	if err != nil {
		return err
	}
	return fault.New(fault.Conflict, "run %s is a turn of the session %s, which is open", row.ID, row.Session).
		WithHint("end it first: `aod agent sessions close %s`", row.Session)
}

// removeTree removes the calls of a run and then the run itself: whoever was stopped in between finds it, and goes on.
// A call may be cleaned up still when its caller is.
func (r *Retention) removeTree(ctx context.Context, root store.Run, removed *api.RemovedRun) error {
	for {
		tree, all, err := r.opts.Store.Runs.Tree(ctx, root.ID, pruneBatch)
		if err != nil {
			return err
		}
		var ids []string
		for _, row := range tree {
			if row.ID == root.ID && all > int64(len(tree)) {
				continue // the last one
			}
			if err := r.cleanedUp(ctx, &row); err != nil {
				return err
			}
			ids = append(ids, row.ID)
			removed.Runs++
			removed.Bytes += row.DiskBytes
		}
		last := all <= int64(len(tree))
		of := ctx
		if last {
			of = store.Audit(ctx, store.Audited{Team: root.Team, Verb: "remove", Noun: "run", Object: root.ID})
		}
		if err := r.removeRuns(of, r.opts.Store.Runs.Erase, ids); err != nil || last {
			return err
		}
	}
}
