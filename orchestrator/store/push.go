package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Push is a receiver that is told what happens in a run.
type Push struct {
	Seq         int64 // given by the store: it grows, and is never given twice
	Run         string
	ID          string // within the run
	URL         string
	Host        string // of the URL
	Token       string // "" for none
	Scheme      string // "" for none
	Credentials string
	CreatedAt   time.Time

	// What became of its deliveries. Put doesn't write it.
	Waiting, Delivered, Lost int64
	NextAt                   time.Time // the first of those that wait isn't tried before; zero: none waits
	TriedAt                  time.Time // the last try; zero: there was none
	Status                   int       // of its answer; 0: there was none
	GivenUpAt                time.Time // zero: it goes on
	Reason                   string    // why it was given up
}

// StoredWithRun implements WithRun: the push is told of a new run from its first event on. It has an ID.
func (Push) StoredWithRun() {}

func (p Push) insertWith(ctx context.Context, tx *transaction, run int64) error {
	_, err := putPush(ctx, tx, run, p, p.ID)
	return err
}

// The bounds of pushes. A push whose deliveries that wait are more is given up, and so is the one
// whose delivery makes those of all too many.
const (
	MaxPushes       = 10 // of a run
	maxPushWaiting  = 1000
	maxPushBacklog  = 100_000
	reasonOfBacklog = "backlog"
)

// Pushes keeps the receivers that are told of runs.
type Pushes struct{ core *core }

// Put stores a push of a run. From then on its deliveries are stored with the events of the
// run that pushes tell of. One of the same id gets another receiver, for what waits as well, and
// goes on if it was given up. Without an ID it gets newID, unless there is one of this receiver already. It returns the
// push as it is stored. The error is a NotFound fault if there is no such run, and a TooLarge
// fault if it has too many.
func (s *Pushes) Put(ctx context.Context, p Push, newID string) (stored Push, err error) {
	err = s.core.changeRun(ctx, "store push", p.Run, func(ctx context.Context, tx *transaction, run int64) error {
		seq, err := putPush(ctx, tx, run, p, newID)
		if err != nil {
			return err
		}
		return scanPush(tx.QueryRowContext(ctx, selectPush+" WHERE pushes.seq = ?", seq), &stored)
	})
	return stored, err
}

func putPush(ctx context.Context, tx *transaction, run int64, p Push, newID string) (seq int64, err error) {
	if p.ID == "" {
		p.ID, err = pushIDOf(ctx, tx, run, p, newID)
		if err != nil {
			return 0, err
		}
	}
	const put = `INSERT INTO pushes (run, id, url, host, token, scheme, credentials, created_at) VALUES (?, ?, ?, ?, ?,
		?, ?, ?)
		ON CONFLICT (run, id) DO UPDATE SET url = excluded.url, host = excluded.host, token = excluded.token,
			scheme = excluded.scheme,
		credentials = excluded.credentials, next_at = excluded.created_at, given_up_at = 0, reason = '' RETURNING seq`
	err = tx.QueryRowContext(ctx, put, run, p.ID, p.URL, p.Host, p.Token, p.Scheme, p.Credentials, nanos(p.CreatedAt)).
		Scan(&seq)
	if err != nil {
		return 0, err
	}
	if err := tx.exec(ctx, "UPDATE deliveries SET tries = 0 WHERE push = ? AND ended_at = 0", seq); err != nil {
		return 0, err
	}
	var count int
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM pushes WHERE run = ? AND webhook IS NULL", run).Scan(&count)
	if err == nil && count > MaxPushes {
		err = fault.New(fault.TooLarge, "the run has %d pushes already", MaxPushes).
			WithHint("remove one that nobody needs")
	}
	return seq, err
}

// pushIDOf returns the id of a run's push of the same receiver, or another one.
func pushIDOf(ctx context.Context, tx *transaction, run int64, p Push, other string) (id string, err error) {
	const same = "SELECT id FROM pushes WHERE run = ? AND url = ? AND token = ? AND scheme = ? AND credentials = ?"
	err = tx.QueryRowContext(ctx, same, run, p.URL, p.Token, p.Scheme, p.Credentials).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return other, nil
	}
	return id, err
}

// Delete removes a push with its deliveries. One that isn't there is a NotFound fault.
func (s *Pushes) Delete(ctx context.Context, run, id string) error {
	return s.core.change(ctx, "delete push", func(ctx context.Context, tx *transaction) error {
		return tx.change(ctx, unknownPush(),
			"DELETE FROM pushes WHERE run = (SELECT seq FROM runs WHERE id = ?) AND id = ? AND webhook IS NULL",
			run, id)
	})
}

func unknownPush() error {
	return fault.New(fault.NotFound, "the run has no push of this id").WithHint("list the pushes of the run")
}

const selectPush = `SELECT pushes.seq, runs.id, pushes.id, url, host, token, scheme, credentials, pushes.created_at,
	waiting,
	(SELECT count(*) FROM deliveries WHERE push = pushes.seq AND delivered = 1),
	(SELECT count(*) FROM deliveries WHERE push = pushes.seq AND delivered = 0 AND ended_at <> 0),
	iif(waiting > 0, next_at, 0), tried_at, status, given_up_at, reason FROM pushes JOIN runs ON runs.seq = pushes.run`

func scanPush(row scanner, p *Push) error {
	return row.Scan(&p.Seq, &p.Run, &p.ID, &p.URL, &p.Host, &p.Token, &p.Scheme, &p.Credentials, stamp{&p.CreatedAt},
		&p.Waiting, &p.Delivered, &p.Lost,
		stamp{&p.NextAt}, stamp{&p.TriedAt}, &p.Status, stamp{&p.GivenUpAt}, &p.Reason)
}

// List returns those of a run, the oldest first. An unknown run has none.
func (s *Pushes) List(ctx context.Context, run string) ([]Push, error) {
	return list(ctx, s.core, "list pushes", scanPush,
		selectPush+" WHERE runs.id = ? AND webhook IS NULL ORDER BY pushes.seq", run)
}

// Get returns a push of a run, or a NotFound fault.
func (s *Pushes) Get(ctx context.Context, run, id string) (Push, error) {
	p, err := find(ctx, s.core.readers, scanPush, unknownPush(),
		selectPush+" WHERE runs.id = ? AND pushes.id = ? AND webhook IS NULL", run, id)
	return p, s.core.explain(ctx, "read push", err)
}

// Backlog returns how many deliveries wait, of the pushes of all runs or of those that somebody has.
func (s *Pushes) Backlog(ctx context.Context, owned Owned) (n int64, err error) {
	count := statement{text: "SELECT push_backlog FROM totals"}
	if !owned.all() {
		count = owned.narrowed("runs", statement{text: "SELECT coalesce(sum(waiting), 0) FROM pushes JOIN runs " +
			"ON runs.seq = pushes.run WHERE waiting > 0"})
	}
	err = s.core.readers.QueryRowContext(ctx, count.text, count.args...).Scan(&n)
	return n, s.core.explain(ctx, "read push backlog", err)
}
