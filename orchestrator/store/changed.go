package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
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
	MadeBy  string    // the name of the token with which they were made; "": any
	States  []string  // any of at most 32; empty: all of Known
	Known   []string  // every state that a run can have
	Since   time.Time // of the change, inclusive; zero: open
	Cursor  string    // ChangedPage.Next of the page before
	Limit   int       // 1..100; 0 is 50
}

// ChangedPage is a part of a list of runs by their last change.
type ChangedPage struct {
	Runs  []Run
	Next  string // the cursor of the next page; "" at the end; clients don't look into it
	Total int64  // how many runs all pages have together
}

// Changed lists runs that nobody called by their last change, the latest first, without Input,
// Output and Private. All pages show the runs as they were placed when the first one was read: one
// that changes meanwhile keeps its place, and is chosen by the state that it had; new ones aren't
// shown, and removed ones are left out. The runs themselves are as they stand when the page is
// read. A limit out of its range, too many units or states and an invalid cursor are Input faults.
func (s *Store) Changed(ctx context.Context, f ChangedFilter) (ChangedPage, error) {
	if err := f.check(); err != nil {
		return ChangedPage{}, err
	}
	from, err := s.changedFrom(ctx, f)
	if err != nil {
		return ChangedPage{}, err
	}
	limit := cmp.Or(f.Limit, defaultLimit)
	var rows []changed
	for _, part := range []statement{f.stayed(changedColumns, from), f.moved(changedColumns, from)} {
		some, err := query(ctx, s.readers, scanChanged, part.text+" ORDER BY 1 DESC, 2 DESC LIMIT ?",
			append(part.args, limit+1)...)
		if err != nil {
			return ChangedPage{}, s.explain(ctx, "list changed runs", err)
		}
		rows = append(rows, some...)
	}
	slices.SortFunc(rows, func(a, b changed) int { return b.place.compare(a.place) })
	return from.page(rows, limit), nil
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

// changedFrom is where a page begins, by its cursor or, for the first one, now.
func (s *Store) changedFrom(ctx context.Context, f ChangedFilter) (frozen, error) {
	if f.Cursor != "" {
		return parseFrozen(f.Cursor)
	}
	var from frozen
	kept := f.kept()
	err := s.readers.QueryRowContext(ctx, "SELECT changed_at, (SELECT coalesce(max(seq), 0) FROM runs), ("+kept.text+
		") FROM totals", kept.args...).
		Scan(&from.at, &from.newest, &from.total)
	if err != nil {
		return from, s.explain(ctx, "list changed runs", err)
	}
	from.place = place{at: from.at, seq: math.MaxInt64}
	if f.Context == "" && f.MadeBy == "" && f.Since.IsZero() {
		return from, nil
	}
	from.total = 0
	for _, part := range []statement{f.stayed("1", from), f.moved("1", from)} {
		var n int64
		if err := s.readers.QueryRowContext(ctx, "SELECT count(*) FROM ("+part.text+")", part.args...).
			Scan(&n); err != nil {
			return from, s.explain(ctx, "count changed runs", err)
		}
		from.total += n
	}
	return from, nil
}

// kept selects how many runs of the units and in the states there are.
func (f ChangedFilter) kept() statement {
	in, args := anyOf(f.chosen())
	text := "SELECT coalesce(sum(runs), 0) FROM run_counts WHERE state IN " + in
	if units := distinct(f.Units); len(units) > 0 {
		in, values := anyOf(units)
		text, args = text+" AND unit IN "+in, append(args, values...)
	}
	return statement{text, args}
}

// statement is a part of a query with what is bound in it.
type statement struct {
	text string
	args []any
}

const (
	stayedAt = "runs.changed_at"
	movedAt  = "was.at"
	// changedColumns begin with the place, whose columns differ.
	changedColumns = "PLACE, runs.seq, " + searched + ", runs.record"
)

// stayed selects the runs that have not changed since the snapshot, from a place on.
func (f ChangedFilter) stayed(columns string, from frozen) statement {
	return f.each(func(index string, terms []string, args []any) statement {
		terms = append(terms, "runs.changed_at >= ? AND (runs.changed_at, runs.seq) < (?, ?)")
		args = append(args, since(f.Since), from.place.at, from.place.seq)
		return statement{"SELECT " + strings.ReplaceAll(columns, "PLACE", stayedAt) + " FROM runs INDEXED BY " + index +
			" WHERE " + strings.Join(terms, " AND "), args}
	}, f.chosen())
}

// moved selects the runs that were there at the snapshot and have changed since, by where they were
// then. They are few: finished runs don't change.
func (f ChangedFilter) moved(columns string, from frozen) statement {
	now := f.each(func(index string, terms []string, args []any) statement {
		terms = append(terms, "runs.changed_at > ? AND runs.seq <= ?")
		args = append(args, from.at, from.newest)
		return statement{"SELECT runs.seq AS seq FROM runs INDEXED BY " + index + " WHERE " +
			strings.Join(terms, " AND "), args}
	}, f.known())
	in, states := anyOf(f.chosen())
	text := "SELECT " + strings.ReplaceAll(columns, "PLACE", movedAt) + " FROM (" + now.text + `) AS now CROSS JOIN runs
		ON runs.seq = now.seq
		CROSS JOIN changes AS was ON was.run = now.seq AND was.at = (SELECT max(at) FROM changes WHERE run = now.seq
			AND at <= ?)
		WHERE was.state IN ` + in + " AND was.at >= ? AND (was.at, runs.seq) < (?, ?)"
	return statement{text, append(append(append(now.args, from.at), states...), since(f.Since), from.place.at,
		from.place.seq)}
}

// each makes one statement of parts that an index has in their order: one for each unit and state,
// one for each state of those that were made with a token, or one for a context, which has few runs.
func (f ChangedFilter) each(part func(index string, terms []string, args []any) statement, states []string) statement {
	if f.Context != "" {
		in, args := anyOf(states)
		terms := []string{"runs.parent = '' AND runs.context = ? AND runs.context <> '' AND runs.state IN " + in}
		args = append([]any{f.Context}, args...)
		if units := distinct(f.Units); len(units) > 0 {
			in, values := anyOf(units)
			terms, args = append(terms, "runs.unit IN "+in), append(args, values...)
		}
		if f.MadeBy != "" {
			terms, args = append(terms, "runs.made_by = ?"), append(args, f.MadeBy)
		}
		return part("runs_changed_by_context", terms, args)
	}
	var all statement
	add := func(one statement) {
		if all.text != "" {
			all.text += " UNION ALL "
		}
		all.text, all.args = all.text+one.text, append(all.args, one.args...)
	}
	for _, state := range states {
		if f.MadeBy != "" {
			add(part(f.byMaker(state)))
			continue
		}
		for _, unit := range distinct(f.Units) {
			add(part("runs_changed_by_unit_state", []string{"runs.parent = '' AND runs.unit = ? AND runs.state = ?"},
				[]any{unit, state}))
		}
		if len(f.Units) == 0 {
			add(part("runs_changed_by_state", []string{"runs.parent = '' AND runs.state = ?"}, []any{state}))
		}
	}
	return all
}

// byMaker is the part of a state among the runs that were made with one token.
func (f ChangedFilter) byMaker(state string) (index string, terms []string, args []any) {
	terms, args = []string{"runs.parent = '' AND runs.made_by = ? AND runs.made_by <> '' AND runs.state = ?"},
		[]any{f.MadeBy, state}
	if units := distinct(f.Units); len(units) > 0 {
		in, values := anyOf(units)
		terms, args = append(terms, "runs.unit IN "+in), append(args, values...)
	}
	return "runs_changed_by_maker_state", terms, args
}

func (f ChangedFilter) known() []string { return distinct(append(slices.Clone(f.Known), f.States...)) }

// chosen are the states to look for.
func (f ChangedFilter) chosen() []string {
	if len(f.States) > 0 {
		return distinct(f.States)
	}
	return f.known()
}

func distinct(values []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// changed is a run and its place in the order.
type changed struct {
	run   Run
	place place
}

func scanChanged(row scanner, c *changed) error {
	// The place comes before the searched columns.
	return scanSearched(leading{row, []any{&c.place.at, &c.place.seq}}, &c.run, &c.run.Record)
}

// leading is a row with columns before those that its reader knows.
type leading struct {
	scanner
	before []any
}

// Scan implements scanner.
func (l leading) Scan(dest ...any) error { return l.scanner.Scan(append(l.before, dest...)...) }
