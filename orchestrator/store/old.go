package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Old selects finished runs.
type Old struct {
	Before time.Time // of FinishedAt, exclusive; zero: any
	After  Run       // the last one that was seen, by ID and FinishedAt; zero: none was
	Limit  int       // at most 1000; 0 is 1000
}

// Oldest returns finished runs by the time of their end, oldest first, without any of their
// documents. Runs of a tree whose root goes on aren't among them: it may need what they gave.
func (s *Store) Oldest(ctx context.Context, o Old) ([]Run, error) {
	before := int64(math.MaxInt64)
	if !o.Before.IsZero() {
		before = nanos(o.Before)
	}
	scan := func(row scanner, r *Run) error { return scanSearched(row, r) }
	return list(ctx, s, "read oldest runs", scan, selectOldest, before, nanos(o.After.FinishedAt), o.After.ID,
		atMost(o.Limit))
}

const selectOldest = "SELECT " + searched + ` FROM runs WHERE finished = 1 AND finished_at < ?
	AND (finished_at, seq) > (?, coalesce((SELECT seq FROM runs WHERE id = ?), 0))
	AND NOT EXISTS (SELECT 1 FROM runs AS roots WHERE roots.id = runs.root AND roots.finished = 0)
	ORDER BY finished_at, seq LIMIT ?`

// LastEnd returns when the last one of the finished runs ended, or zero if there is none.
func (s *Store) LastEnd(ctx context.Context) (time.Time, error) {
	var last time.Time
	err := s.readers.QueryRowContext(ctx, "SELECT coalesce(max(finished_at), 0) FROM runs WHERE finished = 1").
		Scan(stamp{&last})
	return last, s.explain(ctx, "read last end", err)
}

// Known returns the ids that have a row, each with true.
func (s *Store) Known(ctx context.Context, ids []string) (map[string]bool, error) {
	wanted, err := json.Marshal(ids)
	if err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}
	found, err := list(ctx, s, "look for runs", scanValue[string],
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
func (s *Store) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	err := s.readers.QueryRowContext(ctx, "SELECT runs, unfinished, disk_bytes FROM totals").
		Scan(&t.Runs, &t.Unfinished, &t.DiskBytes)
	return t, s.explain(ctx, "read totals", err)
}
