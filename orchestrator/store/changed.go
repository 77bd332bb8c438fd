package store

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	maxChanged     = 100 // runs of a page
	maxUnits       = 32  // of a filter: each of them, with each state, is a part of the statement
	maxContextSize = 1024
)

// ChangedFilter selects runs that nobody called, by their last change.
type ChangedFilter struct {
	Units   []string  // any of at most 32; empty: all
	Context string    // to which their clients count them; "": any
	Owned   Owned     // by whom
	States  []string  // any of at most 32; empty: all of Known
	Known   []string  // every state that a run can have
	Since   time.Time // of the change, inclusive; zero: open
	Cursor  string    // ChangedPage.Next of the page before
	Limit   int       // 1..100; 0 is 50
}

func (f ChangedFilter) check() error {
	switch {
	case f.Limit < 0 || f.Limit > maxChanged:
		return fault.New(fault.Input, "the limit is %d; it can be 1 to %d", f.Limit, maxChanged)
	case len(f.Units) > maxUnits:
		return fault.New(fault.Input, "there are %d units to look for; %d are allowed", len(f.Units), maxUnits)
	case len(f.States) > maxStates:
		return fault.New(fault.Input, "there are %d states to look for; %d are allowed", len(f.States), maxStates)
	case len(f.Context) > maxContextSize:
		return fault.New(fault.Input, "the context has %d bytes; %d are allowed", len(f.Context), maxContextSize)
	}
	return nil
}

// snapshot is a moment of which all pages of a list of changes are, and the place up to which the
// pages before have them.
type snapshot struct {
	at     int64 // the number of the last change
	newest int64 // the greatest seq of a run
	total  int64 // how many runs all pages have
	place  position
}

func (s snapshot) cursor(by seal) string {
	return by.encodeCursor(snapshotForm, s.at, s.newest, s.total, s.place.at, s.place.seq)
}

func parseSnapshot(by seal, text string) (s snapshot, err error) {
	err = by.decodeCursor(text, snapshotForm, &s.at, &s.newest, &s.total, &s.place.at, &s.place.seq)
	if err == nil && (s.place.at > s.at || s.total < 0) {
		err = errCursor()
	}
	return s, err
}

// page drops the extra rows that were read to see whether there is more.
func (s snapshot) page(by seal, rows []listed, limit int) ChangedPage {
	p := ChangedPage{Total: s.total}
	if len(rows) > limit {
		rows = rows[:limit]
		s.place = rows[limit-1].place
		p.Next = s.cursor(by)
	}
	p.Runs = runsOf(rows)
	return p
}

// snapshot is the moment of a page, by its cursor or, for the first one, now.
func (f ChangedFilter) snapshot(ctx context.Context, by seal, db rower) (from snapshot, err error) {
	if f.Cursor != "" {
		return parseSnapshot(by, f.Cursor)
	}
	kept := f.kept()
	err = db.QueryRowContext(ctx, "SELECT changed_at, (SELECT coalesce(max(seq), 0) FROM runs), ("+kept.text+
		") FROM totals", kept.args...).
		Scan(&from.at, &from.newest, &from.total)
	from.place = position{at: from.at, seq: math.MaxInt64}
	if err == nil && (f.Context != "" || f.Owned.By != "" || !f.Since.IsZero()) {
		count := union(append(f.unchangedSince(from, noColumns), f.changedSince(from, noColumns))...).count()
		err = db.QueryRowContext(ctx, count.text, count.args...).Scan(&from.total)
	}
	return from, err
}

// kept selects how many runs of the units and in the states there are.
func (f ChangedFilter) kept() statement {
	var c condition
	c.is("state", f.chosen()...)
	c.is("unit", f.Units...)
	c.is("team", f.Owned.Teams...)
	return c.of("SELECT coalesce(sum(runs), 0) FROM run_counts")
}

// unchangedSince selects the runs that have not changed since the snapshot, from its place on.
func (f ChangedFilter) unchangedSince(from snapshot, columns func(at, seq string) string) (parts []statement) {
	for _, units := range choices(f.Units, f.Context != "" || f.Owned.leads()) {
		for _, states := range choices(f.chosen(), f.Context != "") {
			c := f.condition(units, states)
			c.between("runs.changed_at", "runs.seq", since(f.Since), from.place)
			parts = append(parts, c.of(columns("runs.changed_at", "runs.seq")+" FROM runs"))
		}
	}
	return parts
}

// changedSince selects the runs that were there at the snapshot and have changed since, by where they
// were then. They are few: finished runs don't change.
func (f ChangedFilter) changedSince(from snapshot, columns func(at, seq string) string) statement {
	c := f.condition(f.Units, f.known())
	c.add("runs.changed_at > ? AND runs.seq <= ?", from.at, from.newest)
	c.add("was.at = (SELECT max(at) FROM changes WHERE run = runs.seq AND at <= ?)", from.at)
	c.is("was.state", f.chosen()...)
	c.between("was.at", "runs.seq", since(f.Since), from.place)
	return c.of(columns("was.at", "runs.seq") + " FROM runs CROSS JOIN changes AS was ON was.run = runs.seq")
}

// condition is what is asked of a run as it stands.
func (f ChangedFilter) condition(units, states []string) (c condition) {
	c.add("runs.parent = ''")
	c.has("runs.context", f.Context)
	f.Owned.narrow(&c, "runs", true)
	c.is("runs.unit", units...)
	c.is("runs.state", states...)
	return c
}

func (f ChangedFilter) known() []string { return append(slices.Clone(f.Known), f.States...) }

// chosen are the states to look for.
func (f ChangedFilter) chosen() []string {
	if len(f.States) > 0 {
		return f.States
	}
	return f.known()
}
