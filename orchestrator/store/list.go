package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/agent-on-demand/aod/internal/access"
)

// Page is a part of a list.
type Page struct {
	Runs []Run
	Next string // the cursor of the next page; "" at the end; clients don't look into it
}

// List lists runs, newest first, without Input, Output and Private; fewer than the limit where their
// records are large. A limit out of its
// range, too many states or an invalid cursor are Input faults. Going from page to page
// skips nothing and repeats nothing, even if runs are inserted meanwhile.
func (s *Runs) List(ctx context.Context, f Filter) (Page, error) {
	if err := f.check(); err != nil {
		return Page{}, err
	}
	upTo, err := f.upTo(s.core.seal)
	if err != nil {
		return Page{}, err
	}
	by, err := f.chooseIndex(ctx, s.core.readers, upTo)
	if err != nil {
		return Page{}, s.core.explain(ctx, "list runs", err)
	}
	limit := cmp.Or(f.Limit, defaultLimit)
	list := f.runs(by, upTo).page(limit + 1)
	rows, err := paged(ctx, s.core, "list runs", scanListed, list.text, list.args...)
	return page(s.core.seal, rows, limit), err
}

// page drops the extra row that was read to see whether there is more, where the limit was reached.
func page(by seal, rows []listed, limit int) (p Page) {
	if Full(rows, limit+1) {
		rows = rows[:min(limit, len(rows))]
		p.Next = by.cursor(rows[len(rows)-1].place)
	}
	p.Runs = runsOf(rows)
	return p
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
func (s *Runs) Changed(ctx context.Context, f ChangedFilter) (ChangedPage, error) {
	if err := f.check(); err != nil {
		return ChangedPage{}, err
	}
	from, err := f.snapshot(ctx, s.core.seal, s.core.readers)
	if err != nil {
		return ChangedPage{}, s.core.explain(ctx, "list changed runs", err)
	}
	limit := cmp.Or(f.Limit, defaultLimit)
	list := union(append(f.unchangedSince(from, columns), f.changedSince(from, columns))...).page(limit + 1)
	rows, err := query(ctx, s.core.readers, scanListed, list.text, list.args...)
	if err != nil {
		return ChangedPage{}, s.core.explain(ctx, "list changed runs", err)
	}
	return from.page(s.core.seal, rows, limit), nil
}

// Old selects finished runs.
type Old struct {
	Before time.Time // of FinishedAt, exclusive; zero: any
	After  Run       // the last one that was seen, by ID and FinishedAt; zero: none was
	Owned  Owned     // by whom
	Except []string  // teams of whom none is selected
	Limit  int       // at most 1000; 0 is 1000
}

// Oldest returns finished runs by the time of their end, oldest first, without any of their
// documents. Runs of a tree whose root goes on aren't among them: it may need what they gave.
func (s *Runs) Oldest(ctx context.Context, o Old) ([]Run, error) {
	before := int64(math.MaxInt64)
	if !o.Before.IsZero() {
		before = nanos(o.Before)
	}
	scan := func(row scanner, r *Run) error { return scanSearched(row, r) }
	of := o.Owned.narrowed("runs", statement{selectOldest, []any{before, nanos(o.After.FinishedAt), o.After.ID}})
	for _, team := range o.Except {
		of = of.then(" AND team <> ?", team)
	}
	of = of.then(" ORDER BY finished_at, seq LIMIT ?", atMost(o.Limit))
	return list(ctx, s.core, "read oldest runs", scan, of.text, of.args...)
}

const selectOldest = "SELECT " + searched + ` FROM runs WHERE finished = 1 AND finished_at < ?
	AND (finished_at, seq) > (?, coalesce((SELECT seq FROM runs WHERE id = ?), 0))
	AND NOT EXISTS (SELECT 1 FROM runs AS roots WHERE roots.id = runs.root AND roots.finished = 0)`

// Tree returns the runs of a tree in the order in which they were made, at most so many, without any of their
// documents, and how many there are.
func (s *Runs) Tree(ctx context.Context, root string, most int) (tree []Run, all int64, err error) {
	scan := func(row scanner, r *Run) error { return scanSearched(row, r) }
	tree, err = list(ctx, s.core, "read tree", scan, selectTree, root, most)
	if all = int64(len(tree)); err == nil && len(tree) >= most {
		err = s.core.readers.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE root = ?", root).Scan(&all)
	}
	return tree, all, s.core.explain(ctx, "read tree", err)
}

const selectTree = "SELECT " + searched + " FROM runs WHERE root = ? ORDER BY created_at, seq LIMIT ?"

// LastEnd returns when the last one of the finished runs ended, or zero if there is none.
func (s *Runs) LastEnd(ctx context.Context) (time.Time, error) {
	var last time.Time
	err := s.core.readers.QueryRowContext(ctx, "SELECT coalesce(max(finished_at), 0) FROM runs WHERE finished = 1").
		Scan(stamp{&last})
	return last, s.core.explain(ctx, "read last end", err)
}

// Known returns the ids that have a row, each with true.
func (s *Runs) Known(ctx context.Context, ids []string) (map[string]bool, error) {
	wanted, err := json.Marshal(ids)
	if err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}
	found, err := list(ctx, s.core, "look for runs", scanValue[string],
		"SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?))", string(wanted))
	known := make(map[string]bool, len(found))
	for _, id := range found {
		known[id] = true
	}
	return known, err
}

// Totals are sums over all runs.
type Totals struct {
	Runs       int64
	Unfinished int64
	DiskBytes  int64
}

// Totals returns the sums. Every write updates them, so reading them is cheap.
func (s *Runs) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	err := s.core.readers.QueryRowContext(ctx, "SELECT runs, unfinished, disk_bytes FROM totals").
		Scan(&t.Runs, &t.Unfinished, &t.DiskBytes)
	return t, s.core.explain(ctx, "read totals", err)
}

// BytesOf returns how many bytes the runs of teams take.
func (s *Runs) BytesOf(ctx context.Context, teams ...string) (bytes int64, err error) {
	for _, team := range teams {
		of := "SELECT coalesce((SELECT disk_bytes FROM team_totals WHERE team = ?), 0)"
		if team == access.DefaultTeam {
			of = `SELECT disk_bytes - (SELECT coalesce(sum(disk_bytes), 0) FROM team_totals WHERE team <> ?)
				FROM totals`
		}
		var n int64
		if err = s.core.readers.QueryRowContext(ctx, of, team).Scan(&n); err != nil {
			break
		}
		bytes += n
	}
	return bytes, s.core.explain(ctx, "read size of runs", err)
}

// BytesBy returns how many bytes the runs take that were made with a token.
func (s *Runs) BytesBy(ctx context.Context, token string) (bytes int64, err error) {
	err = s.core.readers.QueryRowContext(ctx,
		"SELECT coalesce((SELECT disk_bytes FROM maker_totals WHERE made_by = ?), 0)", token).Scan(&bytes)
	return bytes, s.core.explain(ctx, "read size of runs", err)
}

// BytesByTeam returns how many bytes the runs of each team take.
func (s *Runs) BytesByTeam(ctx context.Context) (map[string]int64, error) {
	type total struct {
		team  string
		bytes int64
	}
	scan := func(row scanner, t *total) error { return row.Scan(&t.team, &t.bytes) }
	rows, err := list(ctx, s.core, "read sizes of teams", scan, "SELECT team, disk_bytes FROM team_totals")
	if err != nil {
		return nil, err
	}
	bytes := map[string]int64{}
	for _, row := range rows {
		bytes[row.team] = row.bytes
	}
	bytes[access.DefaultTeam], err = s.BytesOf(ctx, access.DefaultTeam)
	return bytes, err
}

// Live counts the unfinished runs of one unit in one state.
type Live struct {
	Unit, State string
	Runs        int64
	Oldest      time.Time // when the first of them was accepted
}

// Live counts the unfinished runs of whoever owns them, by unit and state.
func (s *Runs) Live(ctx context.Context, owned Owned) ([]Live, error) {
	of := owned.narrowed("runs", statement{text: selectLive}).then(" GROUP BY unit, state ORDER BY unit, state")
	return list(ctx, s.core, "count runs", scanLive, of.text, of.args...)
}

const selectLive = "SELECT unit, state, count(*), min(created_at) FROM runs WHERE finished = 0"

func scanLive(row scanner, l *Live) error {
	return row.Scan(&l.Unit, &l.State, &l.Runs, stamp{&l.Oldest})
}

// DocumentBytes returns how many bytes the database keeps of what a run told and asked, and of its
// steps. An unknown run has none.
func (s *Runs) DocumentBytes(ctx context.Context, run string) (bytes int64, err error) {
	const sums = `SELECT (SELECT coalesce(sum(length(data)), 0) FROM events WHERE run = r.seq)
		+ (SELECT coalesce(sum(coalesce(length(delta), 0) + coalesce(length(value), 0)), 0) FROM steps
			WHERE run = r.seq)
		+ (SELECT coalesce(sum(length(text) + coalesce(length(show), 0) + coalesce(length(form),
			0) + coalesce(length(answer), 0)), 0) FROM questions WHERE run = r.seq)
		FROM runs AS r WHERE id = ?`
	rows, err := list(ctx, s.core, "read size of run", scanValue[int64], sums, run)
	for _, n := range rows {
		bytes += n
	}
	return bytes, err
}
