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

// AddModelCall stores a call that is about to be made, and returns its number. The error is a
// NotFound fault if there is no such run.
func (s *Store) AddModelCall(ctx context.Context, run string, c ModelCall) (n int64, err error) {
	err = s.writer.do(ctx, func(ctx context.Context, tx *transaction) error {
		n, err = addModelCall(ctx, tx, run, c)
		return err
	})
	return n, s.explain(ctx, "add model call", err)
}

func addModelCall(ctx context.Context, tx *transaction, run string, c ModelCall) (n int64, err error) {
	seq, err := seqOf(ctx, tx, run)
	if err != nil {
		return 0, err
	}
	const insert = `INSERT INTO model_calls (run, n, at, tokens, cost, settled, estimated, data)
		VALUES (?1, (SELECT coalesce(max(n), 0) + 1 FROM model_calls WHERE run = ?1), ?2, ?3, ?4, ?5, ?6, ?7) RETURNING n`
	err = tx.QueryRowContext(ctx, insert, seq, nanos(c.At), c.Tokens, c.Cost, c.Settled, c.Estimated, c.Data).Scan(&n)
	return n, err
}

// SaveModelCall updates the call with the number N. The error is a NotFound fault if there is
// no such run; a call that isn't there is none.
func (s *Store) SaveModelCall(ctx context.Context, run string, c ModelCall) error {
	err := s.writer.do(ctx, func(ctx context.Context, tx *transaction) error {
		seq, err := seqOf(ctx, tx, run)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE model_calls SET tokens = ?, cost = ?, settled = ?, estimated = ?, data = ? WHERE run = ? AND n = ?",
			c.Tokens, c.Cost, c.Settled, c.Estimated, c.Data, seq, c.N)
		return err
	})
	return s.explain(ctx, "save model call", err)
}

// ModelCalls returns the calls of a run whose N is greater than after, in order: at most
// limit, and never more than 1000. A limit of 0 means 1000. An unknown run has none.
func (s *Store) ModelCalls(ctx context.Context, run string, after int64, limit int) ([]ModelCall, error) {
	const list = `SELECT n, at, tokens, cost, settled, estimated, data FROM model_calls
		WHERE run = (SELECT seq FROM runs WHERE id = ?) AND n > ? ORDER BY n LIMIT ?`
	calls, err := query(ctx, s.readers, scanModelCall, list, run, after, atMost(limit))
	return calls, s.explain(ctx, "read model calls", err)
}

func scanModelCall(row scanner) (ModelCall, error) {
	var c ModelCall
	var at int64
	err := row.Scan(&c.N, &at, &c.Tokens, &c.Cost, &c.Settled, &c.Estimated, &c.Data)
	c.At = fromNanos(at)
	return c, err
}

// ModelSpending is what the runs of a tree have spent on models, and have set aside.
type ModelSpending struct {
	Run          string
	Tokens, Cost int64
}

// ModelSpending returns what each run of a tree has spent itself. Runs that asked no model
// aren't listed.
func (s *Store) ModelSpending(ctx context.Context, root string) ([]ModelSpending, error) {
	const sums = `SELECT runs.id, sum(tokens), sum(cost) FROM runs JOIN model_calls ON model_calls.run = runs.seq
		WHERE runs.root = ? GROUP BY runs.seq`
	scan := func(row scanner) (m ModelSpending, err error) { return m, row.Scan(&m.Run, &m.Tokens, &m.Cost) }
	spent, err := query(ctx, s.readers, scan, sums, root)
	return spent, s.explain(ctx, "sum model calls", err)
}
