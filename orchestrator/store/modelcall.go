package store

import (
	"context"
	"time"
)

// ModelCall is one request of a run for a model.
type ModelCall struct {
	N         int64 // 1, 2, 3, ... within the run, given by the store
	At        time.Time
	Tokens    int64 // spent, or set aside while it isn't settled
	Cost      int64 // likewise, in billionths of the currency
	Settled   bool
	Estimated bool   // charged in full, because nobody said what it took
	Data      []byte // JSON; nil until it is settled
}

// ModelCalls keeps the books of what runs ask models.
type ModelCalls struct{ core *core }

// Add stores a call that is about to be made, and returns its number. The error is a
// NotFound fault if there is no such run.
func (s *ModelCalls) Add(ctx context.Context, run string, c ModelCall) (n int64, err error) {
	const insert = `INSERT INTO model_calls (run, n, at, tokens, cost, settled, estimated, data)
		VALUES (?1, (SELECT coalesce(max(n), 0) + 1 FROM model_calls WHERE run = ?1), ?2, ?3, ?4, ?5, ?6, ?7)
			RETURNING n`
	err = s.core.changeRun(ctx, "add model call", run, func(ctx context.Context, tx *transaction, seq int64) error {
		return tx.QueryRowContext(ctx, insert, seq, nanos(c.At), c.Tokens, c.Cost, c.Settled, c.Estimated, c.Data).
			Scan(&n)
	})
	return n, err
}

// Save updates the call with the number N. The error is a NotFound fault if there is
// no such run; a call that isn't there is none.
func (s *ModelCalls) Save(ctx context.Context, run string, c ModelCall) error {
	return s.core.changeRun(ctx, "save model call", run, func(ctx context.Context, tx *transaction, seq int64) error {
		return tx.exec(ctx,
			"UPDATE model_calls SET tokens = ?, cost = ?, settled = ?, estimated = ?, data = ? WHERE run = ? AND n = ?",
			c.Tokens, c.Cost, c.Settled, c.Estimated, c.Data, seq, c.N)
	})
}

// SettleAll settles calls that aren't with what was set aside for them, as estimated: those of a process that died.
func (s *ModelCalls) SettleAll(ctx context.Context) error {
	return s.core.change(ctx, "settle model calls", func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, "UPDATE model_calls SET settled = 1, estimated = 1 WHERE settled = 0")
	})
}

// bytes implements large.
func (c ModelCall) bytes() int { return len(c.Data) }

// most implements large.
func (ModelCall) most() int { return pageBytes }

// List returns the calls of a run whose N is greater than after, in order: at most limit, never
// more than 1000, and fewer where they are large. A limit of 0 means 1000. An unknown run has none.
func (s *ModelCalls) List(ctx context.Context, run string, after int64, limit int) ([]ModelCall, error) {
	const calls = `SELECT n, at, tokens, cost, settled, estimated, data FROM model_calls
		WHERE run = (SELECT seq FROM runs WHERE id = ?) AND n > ? ORDER BY n LIMIT ?`
	return paged(ctx, s.core, "read model calls", scanModelCall, calls, run, after, atMost(limit))
}

func scanModelCall(row scanner, c *ModelCall) error {
	return row.Scan(&c.N, stamp{&c.At}, &c.Tokens, &c.Cost, &c.Settled, &c.Estimated, &c.Data)
}

// ModelSpending is what the runs of a tree have spent on models, and have set aside.
type ModelSpending struct {
	Run          string
	Tokens, Cost int64
}

// Spending returns what each run of a tree has spent itself. Runs that asked no model
// aren't listed.
func (s *ModelCalls) Spending(ctx context.Context, root string) ([]ModelSpending, error) {
	const sums = `SELECT runs.id, sum(model_calls.tokens), sum(model_calls.cost)
		FROM runs JOIN model_calls ON model_calls.run = runs.seq WHERE runs.root = ? GROUP BY runs.seq`
	scan := func(row scanner, m *ModelSpending) error { return row.Scan(&m.Run, &m.Tokens, &m.Cost) }
	return list(ctx, s.core, "sum model calls", scan, sums, root)
}
