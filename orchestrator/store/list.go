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
	defaultLimit = 50
	maxLimit     = 1000
	// maxStates bounds Filter.States: each state is a part of the statement.
	maxStates = 32
	// maxMetadata bounds Filter.Metadata: each entry is a term of the statement.
	maxMetadata = 16
)

// Filter selects runs to list. Its zero value selects all of them.
type Filter struct {
	Unit, Parent, Root string            // "": any
	Session            string            // of which they are turns; "": any
	Schedule           string            // of which they are occurrences, by its name; "": any
	Context            string            // to which their clients count them; "": any
	MadeBy             string            // the name of the token with which they were made; "": any. No index has it
	States             []string          // any of at most 32; empty: all
	Metadata           map[string]string // all of at most 16; empty: any
	Unfinished         bool              // only runs that haven't finished
	Asking             bool              // only runs with an open question
	Since, Until       time.Time         // of CreatedAt; Since inclusive, Until exclusive; zero: open
	Cursor             string            // Page.Next of the previous page
	Limit              int               // 1..1000; 0 is 50
}

// Page is a part of a list.
type Page struct {
	Runs []Run
	Next string // the cursor of the next page; "" at the end; clients don't look into it
}

// Runs lists runs, newest first, without Input, Output and Private; fewer than the limit where their
// records are large. A limit out of its
// range, too many states or an invalid cursor are Input faults. Going from page to page
// skips nothing and repeats nothing, even if runs are inserted meanwhile.
func (s *Store) Runs(ctx context.Context, f Filter) (Page, error) {
	if err := f.check(); err != nil {
		return Page{}, err
	}
	upTo, err := f.upTo()
	if err != nil {
		return Page{}, err
	}
	limit := cmp.Or(f.Limit, defaultLimit)
	by, err := s.lead(ctx, f, upTo)
	if err != nil {
		return Page{}, s.explain(ctx, "list runs", err)
	}
	text, args := f.statement(by, upTo, limit+1)
	rows, err := paged(ctx, s, "list runs", scanListed, text, args...)
	return page(rows, limit), err
}

func (f Filter) check() error {
	if f.Limit < 0 || f.Limit > maxLimit {
		return fault.New(fault.Input, "the limit is %d; it can be 1 to %d", f.Limit, maxLimit)
	}
	if len(f.States) > maxStates {
		return fault.New(fault.Input, "there are %d states to look for; %d are allowed", len(f.States), maxStates)
	}
	if len(f.Metadata) > maxMetadata {
		return fault.New(fault.Input, "there are %d pieces of metadata to look for; %d are allowed", len(f.Metadata),
			maxMetadata)
	}
	return nil
}

// upTo is the upper end of the list: below the cursor and below Until.
func (f Filter) upTo() (position, error) {
	upTo := position{created: math.MaxInt64, seq: math.MaxInt64}
	if f.Cursor != "" {
		var err error
		if upTo, err = parseCursor(f.Cursor); err != nil {
			return position{}, err
		}
	}
	if !f.Until.IsZero() {
		if until := nanos(f.Until); until <= upTo.created {
			upTo = position{created: until} // no seq is below 1, so runs of that time are excluded
		}
	}
	return upTo, nil
}

// statement names the index, so that no filter can make SQLite walk or sort the table.
func (f Filter) statement(by string, upTo position, limit int) (string, []any) {
	text, args := f.selects(searched+", runs.seq, runs.record", by, upTo)
	created, seq := order(by)
	return text + " ORDER BY " + created + " DESC, " + seq + " DESC LIMIT ?", append(args, limit)
}

// selects is a statement without its order. An index with a state gives the order for one
// state only: several are merged.
func (f Filter) selects(columns, by string, upTo position) (string, []any) {
	if by != "" {
		return f.led(columns, by, upTo)
	}
	states := distinct(f.States)
	index, byState := f.index(len(states) > 0)
	parts := [][]string{states}
	if byState {
		parts = slices.Collect(slices.Chunk(states, 1))
	}
	var texts []string
	var args []any
	for _, part := range parts {
		terms, values := f.terms(by, part, upTo)
		texts = append(texts, "SELECT "+columns+" FROM runs INDEXED BY "+index+" WHERE "+terms)
		args = append(args, values...)
	}
	return strings.Join(texts, " UNION ALL "), args
}

// index returns the index with the fewest entries to read, and whether it is one by state.
func (f Filter) index(byState bool) (string, bool) {
	switch {
	case f.Session != "":
		return "runs_by_session", false
	case f.Schedule != "":
		return "runs_by_schedule", false
	case f.Parent != "":
		return "runs_by_parent", false
	case f.Context != "":
		return "runs_by_context", false
	case f.Root != "":
		return "runs_by_root", false
	case f.Unfinished, f.Asking:
		return "runs_unfinished", false
	case f.Unit != "" && byState:
		return "runs_by_unit_state", true
	case f.Unit != "":
		return "runs_by_unit", false
	case byState:
		return "runs_by_state", true
	}
	return "runs_by_time", false
}

// terms is the condition of one part of the statement.
func (f Filter) terms(by string, states []string, upTo position) (string, []any) {
	created, seq := order(by)
	terms := []string{created + " >= ?", "(" + created + ", " + seq + ") < (?, ?)"}
	args := []any{since(f.Since), upTo.created, upTo.seq}
	add := func(term string, values ...any) {
		terms, args = append(terms, term), append(args, values...)
	}
	if f.Unit != "" {
		add("runs.unit = ?", f.Unit)
	}
	if f.Parent != "" {
		add("runs.parent = ? AND runs.parent <> ''", f.Parent) // the second is the index's own condition
	}
	if f.Session != "" {
		add("runs.session = ? AND runs.session <> ''", f.Session) // as with the parent
	}
	if f.Schedule != "" {
		add("runs.schedule = ? AND runs.schedule <> ''", f.Schedule)
	}
	if f.Context != "" {
		add("runs.context = ? AND runs.context <> ''", f.Context)
	}
	if f.MadeBy != "" {
		add("runs.made_by = ?", f.MadeBy)
	}
	if f.Root != "" {
		add("runs.root = ?", f.Root)
	}
	if f.Unfinished {
		add("runs.finished = 0")
	}
	if f.Asking {
		add(`runs.finished = 0 AND EXISTS (SELECT 1 FROM questions WHERE run = runs.seq AND answered_at = 0
			AND closed_at = 0
			AND (until = 0 OR until > ?))`, nanos(time.Now()))
	}
	if len(states) > 0 {
		in, values := anyOf(states)
		add("runs.state IN "+in, values...)
	}
	if tagged, values := f.tagged(by); tagged != "" {
		add(tagged, values...)
	}
	return strings.Join(terms, " AND "), args
}

// since is the first time of a list as it is stored; zero: it is open.
func since(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return nanos(t)
}

// anyOf returns "(?,?,...)" and the values to bind.
func anyOf(values []string) (string, []any) {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return "(" + strings.TrimSuffix(strings.Repeat("?,", len(values)), ",") + ")", args
}

// listed is a run and its place in the order.
type listed struct {
	run Run
	seq int64
}

func scanListed(row scanner, l *listed) error {
	return scanSearched(row, &l.run, &l.seq, &l.run.Record)
}

// bytes implements large.
func (l listed) bytes() int { return len(l.run.Record) }

// most implements large.
func (listed) most() int { return listBytes }

// page drops the extra row that was read to see whether there is more, where the limit was reached.
func page(rows []listed, limit int) Page {
	var p Page
	if Full(rows, limit+1) {
		rows = rows[:min(limit, len(rows))]
		last := rows[len(rows)-1]
		p.Next = position{created: nanos(last.run.CreatedAt), seq: last.seq}.cursor()
	}
	for _, row := range rows {
		p.Runs = append(p.Runs, row.run)
	}
	return p
}
