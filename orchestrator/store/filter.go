package store

import (
	"context"
	"maps"
	"math"
	"slices"
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
	MadeBy             string            // the name of the token with which they were made; "": any
	Owned              Owned             // by whom; its By and MadeBy choose none where they differ
	States             []string          // any of at most 32; empty: all
	Metadata           map[string]string // all of at most 16; empty: any
	Roots              bool              // only runs that nobody called
	Unfinished         bool              // only runs that haven't finished
	Asking             bool              // only runs with an open question
	Since, Until       time.Time         // of CreatedAt; Since inclusive, Until exclusive; zero: open
	Cursor             string            // Page.Next of the previous page
	Limit              int               // 1..1000; 0 is 50
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
func (f Filter) upTo(by seal) (upTo position, err error) {
	upTo = position{at: math.MaxInt64, seq: math.MaxInt64}
	if f.Cursor != "" {
		if upTo, err = by.position(f.Cursor); err != nil {
			return position{}, err
		}
	}
	if !f.Until.IsZero() {
		if until := nanos(f.Until); until <= upTo.at {
			upTo = position{at: until} // no seq is below 1, so runs of that time are excluded
		}
	}
	return upTo, nil
}

// few reports whether the filter has a column whose index has few runs for a value.
func (f Filter) few() bool {
	return f.Session != "" || f.Schedule != "" || f.Parent != "" || f.Context != "" || f.Root != "" ||
		f.Unfinished || f.Asking
}

// runs selects the runs below a position, in the order of the index that by names: see chooseIndex.
func (f Filter) runs(by string, upTo position) statement { return f.rows(by, upTo, columns) }

// rows is runs with other columns than those of a list.
func (f Filter) rows(by string, upTo position, columns func(at, seq string) string) statement {
	at, seq, from := "runs.created_at", "runs.seq", "runs"
	if by != "" {
		at, seq, from = "lead.created_at", "lead.run", "metadata AS lead CROSS JOIN runs ON runs.seq = lead.run"
	}
	var parts []statement
	for _, states := range choices(f.States, by != "" || f.few()) {
		var c condition
		if by != "" {
			c.add("lead.key = ? AND lead.value = ?", by, f.Metadata[by])
		}
		c.between(at, seq, since(f.Since), upTo)
		f.narrow(&c, states, by)
		parts = append(parts, c.of(columns(at, seq)+" FROM "+from))
	}
	return union(parts...)
}

// narrow adds what the filter asks of a run beside its time and the metadata that leads to it.
func (f Filter) narrow(c *condition, states []string, by string) {
	c.has("runs.session", f.Session)
	c.has("runs.schedule", f.Schedule)
	c.has("runs.parent", f.Parent)
	c.has("runs.context", f.Context)
	c.has("runs.root", f.Root)
	if f.Roots {
		c.add("runs.parent = ''")
	}
	plus := ""
	if f.Unfinished || f.Asking {
		c.add("runs.finished = 0")
		plus = "+" // no index by this column: that of the unfinished is short
	}
	c.is(plus+"runs.unit", some(f.Unit)...)
	c.is(plus+"runs.state", states...)
	leads := by == "" && f.Unit == "" && len(f.States) == 0 && !f.few()
	f.Owned.narrow(c, "runs", leads)
	if f.MadeBy != "" {
		Owned{By: f.MadeBy}.narrow(c, "runs", leads)
	}
	if f.Asking {
		c.add(`EXISTS (SELECT 1 FROM questions WHERE run = runs.seq AND answered_at = 0 AND closed_at = 0
			AND (until = 0 OR until > ?))`, nanos(time.Now()))
	}
	for _, key := range f.keys() {
		if key != by {
			c.add("EXISTS (SELECT 1 FROM metadata WHERE run = runs.seq AND key = ? AND value = ?)", key,
				f.Metadata[key])
		}
	}
}

func (f Filter) keys() []string { return slices.Sorted(maps.Keys(f.Metadata)) }

// Indexes are counted up to the first look, and ten times as far each time when none is shorter.
const (
	firstLook = 1_000
	lastLook  = 100_000
)

// chooseIndex returns the key of the metadata whose index has the fewest runs to read, or "" where one
// of the runs has. The filter doesn't show it, and SQLite doesn't know it: a user may have a few runs
// or all of them.
func (f Filter) chooseIndex(ctx context.Context, db rower, upTo position) (by string, err error) {
	candidates := f.candidates()
	for look := firstLook; len(candidates) > 1 && look <= lastLook; look *= 10 {
		fewest := look
		for _, one := range candidates {
			count := f.entries(one, upTo, fewest).count()
			var n int
			if err := db.QueryRowContext(ctx, count.text, count.args...).Scan(&n); err != nil {
				return "", err
			}
			if n < fewest {
				by, fewest = one, n
			}
		}
		if fewest < look {
			return by, nil
		}
	}
	return candidates[0], nil
}

// candidates are the indexes that may have the fewest runs. There is always one.
func (f Filter) candidates() []string {
	if len(f.Metadata) == 0 || f.few() {
		return []string{""}
	}
	keys := f.keys()
	if f.Unit != "" || len(f.States) > 0 {
		keys = append(keys, "")
	}
	return keys
}

// entries are those of an index that a list would read, up to a number. No table is looked at.
func (f Filter) entries(by string, upTo position, most int) statement {
	var c condition
	table, seq := "runs", "seq"
	if by != "" {
		table, seq = "metadata", "run"
		c.add("key = ? AND value = ?", by, f.Metadata[by])
	} else {
		c.is("unit", some(f.Unit)...)
		c.is("state", f.States...)
	}
	c.between("created_at", seq, since(f.Since), upTo)
	entries := c.of("SELECT 1 FROM " + table)
	return statement{entries.text + " LIMIT ?", append(entries.args, most)}
}

// since is the first time of a list as it is stored; zero: it is open.
func since(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return nanos(t)
}
