package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	MadeBy     string // the name of the token with which it was made; "" for none. Insert alone writes it
	State      string // "idle", "starting", "running", "completed", ...
	Finished   bool   // it won't change any more
	CreatedAt  time.Time
	FinishedAt time.Time // zero until Finished
	DiskBytes  int64     // of its files and documents
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
	run, err := find(ctx, s.readers, scanWhole, UnknownRun(id), selectWhole+" WHERE runs.id = ?", id)
	return run, s.explain(ctx, "read run", err)
}

// Unfinished returns the runs that haven't finished, with all their documents, oldest
// first.
func (s *Store) Unfinished(ctx context.Context) ([]Run, error) {
	return list(ctx, s, "read unfinished runs", scanWhole, selectUnfinished)
}

const (
	searched = "runs.id, runs.unit, runs.kind, runs.parent, runs.root, runs.session, runs.turn, runs.schedule, " +
		"runs.context, runs.made_by, runs.state, runs.finished, runs.created_at, runs.finished_at, runs.disk_bytes"
	selectWhole = "SELECT " + searched + `, runs.record, runs.private, inputs.data, outputs.data
		FROM runs LEFT JOIN inputs ON inputs.run = runs.seq LEFT JOIN outputs ON outputs.run = runs.seq`
	selectUnfinished = selectWhole + " WHERE runs.finished = 0 ORDER BY runs.created_at, runs.seq"
)

func scanWhole(row scanner, r *Run) error {
	return scanSearched(row, r, &r.Record, &r.Private, &r.Input, &r.Output)
}

// scanner is one row of a result.
type scanner interface{ Scan(dest ...any) error }

// scanSearched scans the searched columns into r and the rest into more.
func scanSearched(row scanner, r *Run, more ...any) error {
	dest := []any{
		&r.ID, &r.Unit, &r.Kind, &r.Parent, &r.Root, &r.Session, &r.Turn, &r.Schedule, &r.Context, &r.MadeBy,
		&r.State, &r.Finished,
		stamp{&r.CreatedAt},
		stamp{&r.FinishedAt},
		&r.DiskBytes,
	}
	return row.Scan(append(dest, more...)...)
}

// scanValue scans a row of one column.
func scanValue[T any](row scanner, value *T) error { return row.Scan(value) }

// list returns what a scan makes of each row that a query finds.
func list[T any](
	ctx context.Context, s *Store, operation string, scan func(scanner, *T) error, text string, args ...any,
) ([]T, error) {
	all, err := query(ctx, s.readers, scan, text, args...)
	return all, s.explain(ctx, operation, err)
}

// What the documents of a page take: it ends with the row that reaches this, so that its reader holds
// little however large the rows are. A row has at most some MiB.
const (
	pageBytes = 256 << 10
	listBytes = 4 << 20 // of records, which few read
)

// large is a row whose documents may be large: a page of such rows ends when they have most bytes.
type large interface {
	bytes() int
	most() int
}

// paged is list for large rows. It may end before its limit, but never before the first row; see Full.
func paged[T large](
	ctx context.Context, s *Store, operation string, scan func(scanner, *T) error, text string, args ...any,
) ([]T, error) {
	taken := 0
	page, err := queryWhile(ctx, s.readers, scan, func(one T) bool {
		taken += one.bytes()
		return taken < one.most()
	}, text, args...)
	return page, s.explain(ctx, operation, err)
}

// Full reports whether a page that was asked for with a limit is as large as it may be, by its limit
// or by its bytes, so that there may be more behind it.
func Full[T large](page []T, limit int) bool {
	var one T
	taken := 0
	for _, one = range page {
		taken += one.bytes()
	}
	return len(page) >= limit || taken >= one.most()
}

// find returns what a scan makes of the row that a query finds. Without one the error is missing.
func find[T any](
	ctx context.Context, db rower, scan func(scanner, *T) error, missing error, text string, args ...any,
) (one T, err error) {
	err = scan(db.QueryRowContext(ctx, text, args...), &one)
	if errors.Is(err, sql.ErrNoRows) {
		err = missing
	}
	return one, err
}

// query is list for whoever explains the error.
func query[T any](
	ctx context.Context, db *sql.DB, scan func(scanner, *T) error, text string, args ...any,
) (all []T, err error) {
	return queryWhile(ctx, db, scan, func(T) bool { return true }, text, args...)
}

// queryWhile is query that ends with the first row after which it goes on no more.
func queryWhile[T any](
	ctx context.Context, db *sql.DB, scan func(scanner, *T) error, goesOn func(T) bool, text string, args ...any,
) (all []T, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		if all = append(all, one); !goesOn(one) {
			return all, nil
		}
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

// stamp is a time that is scanned as it is stored.
type stamp struct{ time *time.Time }

// Scan implements sql.Scanner.
func (s stamp) Scan(stored any) error {
	n, ok := stored.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", stored)
	}
	*s.time = fromNanos(n)
	return nil
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
