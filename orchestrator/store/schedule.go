package store

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
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
	Team      string // that owns it; "" is access.DefaultTeam
	MadeBy    string // the name of the token with which it was put last; "" for none
}

// Schedules keeps the schedules.
type Schedules struct{ core *core }

// Put stores a schedule, or gives the one of its name another specification: everything
// but Seq, Fired and CreatedAt is written. It returns the schedule as it is stored.
func (s *Schedules) Put(ctx context.Context, sched Schedule) (stored Schedule, err error) {
	err = s.core.change(ctx, "store schedule", func(ctx context.Context, tx *transaction) error {
		err := tx.exec(ctx, `INSERT INTO schedules (name, unit, spec, input, files, paused, until_planned, fired,
			created_at, changed_at, private, team, made_by)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET unit = excluded.unit,
				spec = excluded.spec, input = excluded.input,
			files = excluded.files, paused = excluded.paused, until_planned = excluded.until_planned,
			changed_at = excluded.changed_at, private = excluded.private, team = excluded.team,
				made_by = excluded.made_by`,
			sched.Name, sched.Unit, sched.Spec, sched.Input, sched.Files, sched.Paused, nanos(sched.Until), sched.Fired,
			nanos(sched.CreatedAt), nanos(sched.ChangedAt), sched.Private, teamOf(sched.Team), sched.MadeBy)
		if err != nil {
			return err
		}
		return scanSchedule(tx.QueryRowContext(ctx, selectSchedule+" WHERE name = ?", sched.Name), &stored)
	})
	return stored, err
}

// Pause notes that a schedule is paused, or isn't any more, and from which time on it
// goes on then. Its occurrences that wait get an outcome and a reason. A schedule that isn't there
// is a NotFound fault.
func (s *Schedules) Pause(ctx context.Context, name string, paused bool, at time.Time, waiting Occurrence) error {
	return s.core.change(ctx, "pause schedule", func(ctx context.Context, tx *transaction) error {
		seq, err := find(ctx, tx, scanValue[int64], UnknownSchedule(name),
			"UPDATE schedules SET paused = ?, until_planned = ?, changed_at = ? WHERE name = ? RETURNING seq", paused,
			nanos(at), nanos(at), name)
		if err != nil {
			return err
		}
		return tx.exec(ctx, "UPDATE occurrences SET outcome = ?, reason = ? WHERE schedule = ? AND outcome = 'waiting'",
			waiting.Outcome, waiting.Reason, seq)
	})
}

// Delete removes a schedule with its occurrences. Its runs stay. One that isn't there is a
// NotFound fault.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	return s.core.change(ctx, "delete schedule", func(ctx context.Context, tx *transaction) error {
		return tx.change(ctx, UnknownSchedule(name), "DELETE FROM schedules WHERE name = ?", name)
	})
}

const (
	scheduleColumns = "seq, name, unit, spec, files, paused, until_planned, fired, created_at, changed_at, private, " +
		"team, made_by"
	selectSchedule = "SELECT " + scheduleColumns + ", input FROM schedules"
	listSchedules  = "SELECT " + scheduleColumns + ", NULL FROM schedules"
)

func scanSchedule(row scanner, c *Schedule) error {
	return row.Scan(&c.Seq, &c.Name, &c.Unit, &c.Spec, &c.Files, &c.Paused, stamp{&c.Until}, &c.Fired,
		stamp{&c.CreatedAt}, stamp{&c.ChangedAt}, &c.Private, &c.Team, &c.MadeBy, &c.Input)
}

// Get returns a schedule, or a NotFound fault.
func (s *Schedules) Get(ctx context.Context, name string) (Schedule, error) {
	found, err := find(ctx, s.core.readers, scanSchedule, UnknownSchedule(name), selectSchedule+" WHERE name = ?", name)
	return found, s.core.explain(ctx, "read schedule", err)
}

// UnknownSchedule is the NotFound fault of a schedule that there isn't.
func UnknownSchedule(name string) error {
	return fault.New(fault.NotFound, "there is no schedule %s", fault.Quote(name)).
		WithHint("`aod schedule list` lists them")
}

// OfUnit returns the names of schedules that run a unit, by who owns them, sorted, at most so many.
func (s *Schedules) OfUnit(ctx context.Context, unit string, owned Owned, most int) ([]string, error) {
	of := owned.narrowed("schedules", statement{"SELECT name FROM schedules WHERE unit = ?", []any{unit}}).
		then(" ORDER BY name LIMIT ?", most)
	return list(ctx, s.core, "list schedules", scanValue[string], of.text, of.args...)
}

// List lists schedules without their inputs, the newest first, by who owns them: before is of Behind, or 0 to
// begin. The limit is at most 1000; 0 is 1000.
func (s *Schedules) List(ctx context.Context, owned Owned, before int64, limit int) ([]Schedule, error) {
	before, err := s.core.seal.begin(inSchedules, before)
	if err != nil {
		return nil, err
	}
	of := owned.narrowed("schedules", statement{listSchedules + " WHERE seq < ?", []any{below(before)}}).
		then(" ORDER BY seq DESC LIMIT ?", atMost(limit))
	return list(ctx, s.core, "list schedules", scanSchedule, of.text, of.args...)
}

// Behind returns where the page begins that goes on behind a row. It tells nothing of how many rows there are.
func (s *Schedules) Behind(row Schedule) int64 { return s.core.seal.number(inSchedules, row.Seq) }
