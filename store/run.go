package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"
)

// Run is a row: the searched columns, and documents that the store doesn't read. Times are
// kept to the nanosecond and come back in UTC.
type Run struct {
	ID         string // UUID v7: sorts by creation
	Unit       string
	Kind       string // "capsule", ...
	Parent     string // "" for a root
	Root       string
	Session    string // of which it is a turn; "" for none
	Turn       int    // its number in the session, from 1; 0 for none
	Schedule   string // of which it is an occurrence, by its name; "" for none
	Context    string // to which its client counts it; "" for none
	State      string // "idle", "starting", "running", "completed", ...
	Finished   bool   // it won't change any more
	CreatedAt  time.Time
	FinishedAt time.Time // zero until Finished
	DiskBytes  int64     // of its files
	Record     []byte    // JSON; rewritten by every Save; small (no input, no output)
	Private    []byte    // JSON for the orchestrator alone; rewritten by every Save
	Input      []byte    // JSON; written by Insert only
	Output     []byte    // JSON; nil until there is one; Save with nil keeps the stored one

	// Metadata is what lists may search by. Insert alone writes it, and reads don't return
	// it: a caller that shows it keeps it in Record.
	Metadata map[string]string

	// Occurrence is the one that the run is of; nil for none. Insert alone writes it: a new one, or
	// the end of one that waited. One that is stored already is a *Happened.
	Occurrence *Occurrence

	// Steps are those that the run begins with. Insert alone writes them.
	Steps []Step

	// Pushes are told of the run from its first event on. Insert alone writes them; each has an ID.
	Pushes []Push
}

// Run returns a run with all its documents, or a NotFound fault.
func (s *Store) Run(ctx context.Context, id string) (Run, error) {
	run, err := scanWhole(s.readers.QueryRowContext(ctx, selectWhole+" WHERE runs.id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		return Run{}, unknown(id)
	}
	return run, s.explain(ctx, "read run", err)
}

// Unfinished returns the runs that haven't finished, with all their documents, oldest
// first.
func (s *Store) Unfinished(ctx context.Context) ([]Run, error) {
	runs, err := query(ctx, s.readers, scanWhole, selectUnfinished)
	return runs, s.explain(ctx, "read unfinished runs", err)
}

const (
	searched    = "runs.id, runs.unit, runs.kind, runs.parent, runs.root, runs.session, runs.turn, runs.schedule, runs.context, runs.state, runs.finished, runs.created_at, runs.finished_at, runs.disk_bytes"
	selectWhole = "SELECT " + searched + `, runs.record, runs.private, inputs.data, outputs.data
		FROM runs LEFT JOIN inputs ON inputs.run = runs.seq LEFT JOIN outputs ON outputs.run = runs.seq`
	selectUnfinished = selectWhole + " WHERE runs.finished = 0 ORDER BY runs.created_at, runs.seq"
)

func scanWhole(row scanner) (Run, error) {
	var r Run
	err := scanSearched(row, &r, &r.Record, &r.Private, &r.Input, &r.Output)
	return r, err
}

// scanner is one row of a result.
type scanner interface{ Scan(dest ...any) error }

// scanSearched scans the searched columns into r and the rest into more.
func scanSearched(row scanner, r *Run, more ...any) error {
	var created, finished int64
	dest := []any{&r.ID, &r.Unit, &r.Kind, &r.Parent, &r.Root, &r.Session, &r.Turn, &r.Schedule, &r.Context, &r.State, &r.Finished, &created, &finished, &r.DiskBytes}
	err := row.Scan(append(dest, more...)...)
	r.CreatedAt, r.FinishedAt = fromNanos(created), fromNanos(finished)
	return err
}

// query returns the result of scan for each row.
func query[T any](ctx context.Context, db *sql.DB, scan func(scanner) (T, error), text string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

var earliest, latest = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

// nanos returns a time as it is stored. A time out of range becomes the nearest end of the
// range.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(earliest):
		return math.MinInt64
	case t.After(latest):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
