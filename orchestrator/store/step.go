package store

import (
	"context"
	"time"
)

// Step is a step of a flow's run. Address and Try name it within the run.
type Step struct {
	Seq          int64 // given by the store, anew with each change: it grows within the run
	Address      string
	Try          int
	State        string
	Call         string // the id of the run that it called; "" is none
	Cached       bool
	Action       string
	Delta, Value []byte // JSON; nil: nothing
	Error        []byte // JSON; nil: none
	Until        time.Time
	Began, Ended time.Time
}

// Steps keeps the steps of flows.
type Steps struct{ core *core }

// Keep stores a step in place of that with the same address and try, with events, all or
// nothing. The error is a NotFound fault if there is no such run.
func (s *Steps) Keep(ctx context.Context, run string, step Step, events ...Event) error {
	return s.core.changeRun(ctx, "keep step", run, func(ctx context.Context, tx *transaction, seq int64) error {
		if err := keepStep(ctx, tx, seq, step); err != nil {
			return err
		}
		return addEvents(ctx, tx, seq, events)
	})
}

func keepStep(ctx context.Context, tx *transaction, run int64, s Step) error {
	const upsert = `INSERT INTO steps (run, seq, address, try, state, call, cached, action, delta, value, error, until,
		began, ended)
		VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM steps WHERE run = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
			?11, ?12, ?13)
		ON CONFLICT (run, address, try) DO UPDATE SET seq = excluded.seq, state = excluded.state, call = excluded.call,
			cached = excluded.cached, action = excluded.action, delta = excluded.delta, value = excluded.value,
				error = excluded.error,
			until = excluded.until, began = excluded.began, ended = excluded.ended`
	return tx.exec(ctx, upsert, run, s.Address, s.Try, s.State, s.Call, s.Cached, s.Action, s.Delta, s.Value, s.Error,
		nanos(s.Until), nanos(s.Began), nanos(s.Ended))
}

// bytes implements large.
func (s Step) bytes() int { return len(s.Delta) + len(s.Value) + len(s.Error) }

// most implements large.
func (Step) most() int { return pageBytes }

// List returns the steps of a run whose Seq is greater than after, in the order of their
// last changes: at most limit, never more than 1000, and fewer where they are large. A limit of 0
// means 1000. An unknown run has none.
func (s *Steps) List(ctx context.Context, run string, after int64, limit int) ([]Step, error) {
	return s.list(ctx, "delta, value", run, after, limit)
}

// Heads is List without Delta and Value.
func (s *Steps) Heads(ctx context.Context, run string, after int64, limit int) ([]Step, error) {
	return s.list(ctx, "NULL, NULL", run, after, limit)
}

func (s *Steps) list(ctx context.Context, documents, run string, after int64, limit int) ([]Step, error) {
	text := `SELECT seq, address, try, state, call, cached, action, ` + documents + `, error, until, began, ended
		FROM steps
		WHERE run = (SELECT seq FROM runs WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?`
	return paged(ctx, s.core, "read steps", scanStep, text, run, after, atMost(limit))
}

func scanStep(row scanner, s *Step) error {
	return row.Scan(&s.Seq, &s.Address, &s.Try, &s.State, &s.Call, &s.Cached, &s.Action, &s.Delta, &s.Value, &s.Error,
		stamp{&s.Until}, stamp{&s.Began}, stamp{&s.Ended})
}

// StepCounts are how many steps of a run there are, by their states.
type StepCounts map[string]int

// Counts counts the steps of a run. An unknown run has none.
func (s *Steps) Counts(ctx context.Context, run string) (StepCounts, error) {
	type count struct {
		state string
		steps int
	}
	const sums = `SELECT state, count(*) FROM steps WHERE run = (SELECT seq FROM runs WHERE id = ?) GROUP BY state`
	scan := func(row scanner, c *count) error { return row.Scan(&c.state, &c.steps) }
	rows, err := list(ctx, s.core, "count steps", scan, sums, run)
	counts := StepCounts{}
	for _, row := range rows {
		counts[row.state] = row.steps
	}
	return counts, err
}
