package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

// Schedule starts runs of a unit at given times.
type Schedule struct {
	Seq       int64 // given by the store: it grows
	Name      string
	Unit      string
	Spec      []byte // JSON, without the input
	Input     []byte // JSON; nil for none, and where it wasn't asked for
	Files     string // the directory of its files; "" for none
	Paused    bool
	Until     time.Time // up to it every planned time was looked at
	Fired     int       // how many occurrences it has had
	CreatedAt time.Time
	ChangedAt time.Time
	Private   []byte // JSON for the orchestrator alone
}

// PutSchedule stores a schedule, or gives the one of its name another specification: everything
// but Seq, Fired and CreatedAt is written. It returns the schedule as it is stored.
func (s *Store) PutSchedule(ctx context.Context, sched Schedule) (stored Schedule, err error) {
	err = s.write(ctx, func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO schedules (name, unit, spec, input, files, paused, until_planned, fired, created_at, changed_at, private)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET unit = excluded.unit, spec = excluded.spec, input = excluded.input,
			files = excluded.files, paused = excluded.paused, until_planned = excluded.until_planned, changed_at = excluded.changed_at, private = excluded.private`,
			sched.Name, sched.Unit, sched.Spec, sched.Input, sched.Files, sched.Paused, nanos(sched.Until), sched.Fired,
			nanos(sched.CreatedAt), nanos(sched.ChangedAt), sched.Private)
		if err != nil {
			return err
		}
		stored, err = scanSchedule(tx.QueryRowContext(ctx, selectSchedule+" WHERE name = ?", sched.Name))
		return err
	})
	return stored, s.explain(ctx, "store schedule", err)
}

// PauseSchedule notes that a schedule is paused, or isn't any more, and from which time on it
// goes on then. Its occurrences that wait get an outcome and a reason. A schedule that isn't there
// is a NotFound fault.
func (s *Store) PauseSchedule(ctx context.Context, name string, paused bool, at time.Time, waiting Occurrence) error {
	err := s.write(ctx, func(ctx context.Context, tx *transaction) error {
		var seq int64
		err := tx.QueryRowContext(ctx, "UPDATE schedules SET paused = ?, until_planned = ?, changed_at = ? WHERE name = ? RETURNING seq",
			paused, nanos(at), nanos(at), name).Scan(&seq)
		if errors.Is(err, sql.ErrNoRows) {
			return unknownSchedule(name)
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE occurrences SET outcome = ?, reason = ? WHERE schedule = ? AND outcome = 'waiting'",
			waiting.Outcome, waiting.Reason, seq)
		return err
	})
	return s.explain(ctx, "pause schedule", err)
}

// DeleteSchedule removes a schedule with its occurrences. Its runs stay. One that isn't there is a
// NotFound fault.
func (s *Store) DeleteSchedule(ctx context.Context, name string) error {
	err := s.write(ctx, func(ctx context.Context, tx *transaction) error {
		done, err := tx.ExecContext(ctx, "DELETE FROM schedules WHERE name = ?", name)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, unknownSchedule(name))
		}
		return nil
	})
	return s.explain(ctx, "delete schedule", err)
}

const (
	scheduleColumns = "seq, name, unit, spec, files, paused, until_planned, fired, created_at, changed_at, private"
	selectSchedule  = "SELECT " + scheduleColumns + ", input FROM schedules"
	listSchedules   = "SELECT " + scheduleColumns + ", NULL FROM schedules"
)

func scanSchedule(row scanner) (c Schedule, err error) {
	var until, created, changed int64
	err = row.Scan(&c.Seq, &c.Name, &c.Unit, &c.Spec, &c.Files, &c.Paused, &until, &c.Fired, &created, &changed, &c.Private, &c.Input)
	c.Until, c.CreatedAt, c.ChangedAt = fromNanos(until), fromNanos(created), fromNanos(changed)
	return c, err
}

// Schedule returns a schedule, or a NotFound fault.
func (s *Store) Schedule(ctx context.Context, name string) (Schedule, error) {
	found, err := scanSchedule(s.readers.QueryRowContext(ctx, selectSchedule+" WHERE name = ?", name))
	if errors.Is(err, sql.ErrNoRows) {
		return Schedule{}, unknownSchedule(name)
	}
	return found, s.explain(ctx, "read schedule", err)
}

func unknownSchedule(name string) error {
	return fault.New(fault.NotFound, "there is no schedule %s", fault.Quote(name)).WithHint("`aod schedule list` lists them")
}

// Schedules lists schedules without their inputs, the newest first: those with a smaller Seq than
// before, where that isn't 0. The limit is at most 1000; 0 is 1000.
func (s *Store) Schedules(ctx context.Context, before int64, limit int) ([]Schedule, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	all, err := query(ctx, s.readers, scanSchedule, listSchedules+" WHERE seq < ? ORDER BY seq DESC LIMIT ?", before, atMost(limit))
	return all, s.explain(ctx, "list schedules", err)
}
