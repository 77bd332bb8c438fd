package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// scanner is one row of a result.
type scanner interface{ Scan(dest ...any) error }

// scanValue scans a row of one column.
func scanValue[T any](row scanner, value *T) error { return row.Scan(value) }

// list returns what a scan makes of each row that a query finds.
func list[T any](
	ctx context.Context, c *core, operation string, scan func(scanner, *T) error, text string, args ...any,
) ([]T, error) {
	all, err := query(ctx, c.readers, scan, text, args...)
	return all, c.explain(ctx, operation, err)
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
	ctx context.Context, c *core, operation string, scan func(scanner, *T) error, text string, args ...any,
) ([]T, error) {
	taken := 0
	page, err := queryWhile(ctx, c.readers, scan, func(one T) bool {
		taken += one.bytes()
		return taken < one.most()
	}, text, args...)
	return page, c.explain(ctx, operation, err)
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

// atMost bounds a limit that the program set itself.
func atMost(limit int) int {
	if limit <= 0 || limit > maxLimit {
		return maxLimit
	}
	return limit
}

// below is the bound of a list that goes down from a Seq; 0: from the newest on.
func below(before int64) int64 {
	if before <= 0 {
		return math.MaxInt64
	}
	return before
}
