package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/agent-on-demand/aod/api/fault"
)

// maxKey bounds an idempotency key, in bytes.
const maxKey = 1024

// Key makes a submission idempotent.
type Key struct {
	Value       string // "" for none; at most 1024 bytes
	Fingerprint string // of the request
}

// Keys keeps the keys by which requests are known again.
type Keys struct{ core *core }

// Get returns the run that was inserted with a key and the fingerprint of its
// request, or a NotFound fault.
func (s *Keys) Get(ctx context.Context, key string) (run, fingerprint string, err error) {
	taken, err := findKey(ctx, s.core.readers, key)
	if err != nil {
		return "", "", s.core.explain(ctx, "read key", err)
	}
	if taken == nil {
		return "", "", fault.New(fault.NotFound, "there is no run of this idempotency key")
	}
	return taken.Run, taken.Fingerprint, nil
}

// List returns the keys that begin with a prefix, in their order.
func (s *Keys) List(ctx context.Context, prefix string) ([]string, error) {
	return list(ctx, s.core, "read keys", scanValue[string], "SELECT value FROM keys WHERE value >= ? AND value < ?",
		prefix, prefix+"\U0010FFFF")
}

// findKey returns nil for an unknown key.
func findKey(ctx context.Context, db rower, key string) (*Taken, error) {
	var t Taken
	err := db.QueryRowContext(ctx,
		"SELECT runs.id, keys.fingerprint FROM keys JOIN runs ON runs.seq = keys.run WHERE keys.value = ?", key).
		Scan(&t.Run, &t.Fingerprint)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &t, err
}

// take gives a key to a run, unless another run has it already.
func take(ctx context.Context, tx *transaction, key Key, seq int64) error {
	taken, err := findKey(ctx, tx, key.Value)
	if err != nil {
		return err
	}
	if taken != nil {
		return taken
	}
	return tx.exec(ctx, "INSERT INTO keys (value, fingerprint, run) VALUES (?, ?, ?)", key.Value, key.Fingerprint, seq)
}

// takeOnce is take for a run that may have the key already: then fresh is false. No key is fresh.
func takeOnce(ctx context.Context, tx *transaction, key Key, run string, seq int64) (fresh bool, err error) {
	if key.Value == "" {
		return true, nil
	}
	err = take(ctx, tx, key, seq)
	var taken *Taken
	if errors.As(err, &taken) && taken.Run == run && taken.Fingerprint == key.Fingerprint {
		return false, nil
	}
	return err == nil, err
}

// Drop takes from a run its keys that begin with a prefix, and returns how many it had. An
// unknown run has none.
func (s *Keys) Drop(ctx context.Context, run, prefix string) (dropped int64, err error) {
	const had = "SELECT count(*) FROM keys WHERE run = (SELECT seq FROM runs WHERE id = ?) AND value >= ? AND value < ?"
	after := prefix + "\U0010FFFF"
	if err := s.core.readers.QueryRowContext(ctx, had, run, prefix, after).Scan(&dropped); err != nil || dropped == 0 {
		return 0, s.core.explain(ctx, "drop keys", err)
	}
	err = s.core.change(ctx, "drop keys", func(ctx context.Context, tx *transaction) (err error) {
		dropped, err = tx.rows(ctx,
			"DELETE FROM keys WHERE run = (SELECT seq FROM runs WHERE id = ?) AND value >= ? AND value < ?", run,
			prefix, after)
		return err
	})
	return dropped, err
}

// Point gives a key to a run, also one that another run has. It goes with the run. The error
// is a NotFound fault if there is no such run.
func (s *Keys) Point(ctx context.Context, key Key, run string) error {
	return s.core.changeRun(ctx, "point key", run, func(ctx context.Context, tx *transaction, seq int64) error {
		return tx.exec(ctx, `INSERT INTO keys (value, fingerprint, run) VALUES (?, ?, ?)
			ON CONFLICT (value) DO UPDATE SET fingerprint = excluded.fingerprint, run = excluded.run`, key.Value,
			key.Fingerprint, seq)
	})
}
