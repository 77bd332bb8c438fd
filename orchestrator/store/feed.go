package store

import (
	"context"
	"maps"
	"slices"
)

// Gone is the FeedRow.State of what was removed.
const Gone = "gone"

// KeptChanges is how many of the newest numbers of the feed can be read: Trim removes the others.
const KeptChanges = 100_000

// FeedRow is the last change of a run, a question, a session or a unit.
type FeedRow struct {
	Seq     int64  // it grows with each change, and is given once
	Noun    string // "run", "question", "session" or "unit"
	ID      string // of a unit: its name
	Unit    string // of a run, also of that which asks, and of a session
	Parent  string // of a run; of a question: the run that asks
	Root    string // of a run, also of that which asks
	State   string // of a unit: its mark, see SetUnits; or Gone
	Outcome string // of a run
	Team    string // that owns it; "" of a unit of the operator's
	MadeBy  string // the name of the token with which it was made; "" for none
}

// Feed keeps what changed last of each thing. Triggers write it in the transaction of the change.
type Feed struct{ core *core }

const selectFeed = "SELECT seq, noun, id, unit, parent, root, state, outcome, team, made_by FROM feed"

const newestSeq = "SELECT coalesce(max(seq), 0) FROM feed"

func newestChange(ctx context.Context, db rower) (seq int64, err error) {
	err = db.QueryRowContext(ctx, newestSeq).Scan(&seq)
	return seq, err
}

// Newest returns the number of the last change; 0: there was none.
func (f *Feed) Newest(ctx context.Context) (int64, error) {
	seq, err := newestChange(ctx, f.core.readers)
	return seq, f.core.explain(ctx, "read feed", err)
}

// List returns what changed after the change with the number after, in order, at most limit: of each thing its last
// change alone. whole is false where there may be more than is kept, and for a number that wasn't given yet.
func (f *Feed) List(ctx context.Context, after int64, limit int) (rows []FeedRow, whole bool, err error) {
	const text = selectFeed + " WHERE seq > ? ORDER BY seq LIMIT ?"
	if rows, err = list(ctx, f.core, "read feed", scanFeedRow, text, after, atMost(limit)); err != nil {
		return nil, false, err
	}
	newest, err := f.Newest(ctx) // after the rows: what was removed before them isn't overlooked
	return rows, after <= newest && newest-after <= KeptChanges, err
}

func scanFeedRow(row scanner, r *FeedRow) error {
	return row.Scan(&r.Seq, &r.Noun, &r.ID, &r.Unit, &r.Parent, &r.Root, &r.State, &r.Outcome, &r.Team, &r.MadeBy)
}

// Sealed returns the number of a change as clients are told it: it tells nothing of how many others there were.
func (f *Feed) Sealed(seq int64) int64 { return f.core.seal.number(inFeed, seq) }

// Unsealed returns what Sealed was made of. The error is an Input fault.
func (f *Feed) Unsealed(number int64) (int64, error) { return f.core.seal.seq(inFeed, number) }

// Changed returns a channel that is closed when this process has stored the next change, or the Store is closed. Over
// a damaged database it never is.
func (f *Feed) Changed() <-chan struct{} {
	if f.core.writer == nil {
		return nil
	}
	return f.core.writer.fed.After()
}

// trimmedAtOnce is how many rows one write removes. Others come between two of them.
const trimmedAtOnce = 1000

// Trim removes what nobody can read any more, but for the units that there are.
func (f *Feed) Trim(ctx context.Context) error {
	const old = `DELETE FROM feed WHERE seq IN (SELECT seq FROM feed
		WHERE seq < (SELECT max(seq) FROM feed) - ? AND (noun <> 'unit' OR state = 'gone') LIMIT ?)`
	for removed := int64(trimmedAtOnce); removed == trimmedAtOnce; {
		err := f.core.change(ctx, "trim feed", func(ctx context.Context, tx *transaction) (err error) {
			removed, err = tx.rows(ctx, old, KeptChanges, trimmedAtOnce)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// UnitMark is what the feed has of a unit: a mark that differs when it has changed, and the team that owns it; "": the
// operator.
type UnitMark struct{ Mark, Team string }

// SetUnits stores which units there are. A unit that isn't named is Gone.
func (f *Feed) SetUnits(ctx context.Context, marks map[string]UnitMark) error {
	const known = selectFeed + " WHERE noun = 'unit'"
	rows, err := list(ctx, f.core, "read units of feed", scanFeedRow, known)
	if err != nil {
		return err
	}
	changed := map[string]UnitMark{}
	maps.Copy(changed, marks)
	for _, r := range rows {
		switch mark, there := marks[r.ID]; {
		case there && mark == (UnitMark{r.State, r.Team}):
			delete(changed, r.ID)
		case !there && r.State != Gone:
			changed[r.ID] = UnitMark{Gone, r.Team}
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return f.core.change(ctx, "tell of units", func(ctx context.Context, tx *transaction) error {
		for _, name := range slices.Sorted(maps.Keys(changed)) {
			const told = "INSERT OR REPLACE INTO feed (noun, id, state, team) VALUES ('unit', ?, ?, ?)"
			if err := tx.exec(ctx, told, name, changed[name].Mark, changed[name].Team); err != nil {
				return err
			}
		}
		return nil
	})
}
