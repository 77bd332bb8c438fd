package retention

import (
	"context"
	"time"
)

// A clock may jump: a machine without a battery begins in the past, and somebody types a
// wrong year. Runs don't grow old by that.

const (
	// longAway is how long a server may be away before its clock is doubted.
	longAway = 24 * time.Hour
	// doubt is how long runs aren't too old then: enough for a time server to be heard.
	doubt = time.Hour
)

// ages returns the time by which runs grow old: what the clock says now, but never more than has
// passed since the service was opened.
func (r *Retention) ages(now time.Time) time.Time {
	return steady(r.opts.Opened, now, now.Sub(r.opts.Opened))
}

// steady returns the earlier one of what the clock says now and what it said at the start with
// the time that has passed since.
func steady(opened, now time.Time, passed time.Duration) time.Time {
	counted := opened.Round(0).Add(passed)
	if now.Round(0).Before(counted) {
		return now
	}
	return counted
}

// HoldAge keeps runs for a while if the clock says that all of them are too old. The server may
// have been away for so long; or the clock is wrong, and it would remove them all at once.
func (r *Retention) HoldAge(ctx context.Context) {
	last, err := r.opts.Store.Runs.LastEnd(ctx)
	if err != nil || last.IsZero() || r.opts.Age <= 0 ||
		r.opts.Opened.Sub(last) <= max(r.opts.Age, longAway) {
		return
	}
	r.held = r.opts.Opened.Add(doubt)
	r.opts.Logger.Warn("all runs are older than retention_age: none is removed for now, the clock may be wrong",
		"last_end", last, "hold_seconds", doubt.Seconds())
}
