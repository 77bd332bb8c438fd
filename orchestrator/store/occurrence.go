package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// maxOccurrences is how many of a schedule are kept; the oldest go first.
const maxOccurrences = 1000

// Occurrence is one planned time of a schedule: there is at most one of each.
type Occurrence struct {
	Seq      int64 // given by the store: it grows
	Schedule int64 // by its Seq
	Planned  time.Time
	Fired    time.Time
	LateMS   int64
	Outcome  string // "started", "waiting", ...
	Run      string // "" for none
	Reason   string
	Manual   bool // a person asked for it: it doesn't count
}

// Happened is returned where an occurrence is stored already that was to be stored.
type Happened struct{ Planned time.Time }

func (h *Happened) Error() string {
	return fmt.Sprintf("the occurrence of %s is stored already", h.Planned.Format(time.RFC3339))
}

// Occurrences keeps the planned times of schedules, and what became of them.
type Occurrences struct{ core *core }

// Add stores occurrences of one schedule, all or none, and notes that it was looked at
// up to a time. Those that are stored already are left as they are, and don't count. It returns how
// many are new. A schedule that isn't there is a NotFound fault.
func (s *Occurrences) Add(
	ctx context.Context, schedule int64, until time.Time, all ...Occurrence,
) (added int, err error) {
	err = s.core.change(ctx, "store occurrences", func(ctx context.Context, tx *transaction) error {
		added = 0
		for _, o := range all {
			err := insertOccurrence(ctx, tx, o)
			var happened *Happened
			if errors.As(err, &happened) {
				continue
			}
			if err != nil {
				return err
			}
			if !o.Manual {
				added++
			}
		}
		return lookedAt(ctx, tx, schedule, until, added)
	})
	return added, err
}

// Save writes Outcome, Run and Reason of a stored occurrence.
func (s *Occurrences) Save(ctx context.Context, o Occurrence) error {
	return s.core.change(ctx, "save occurrence",
		func(ctx context.Context, tx *transaction) error { return saveOccurrence(ctx, tx, o) })
}

// StoredWithRun implements WithRun: it is the occurrence of the new run, and new as well, or one that waited. One
// that is stored already is a *Happened.
func (Occurrence) StoredWithRun() {}

func (o Occurrence) insertWith(ctx context.Context, tx *transaction, _ int64) error {
	if o.Seq != 0 {
		return saveOccurrence(ctx, tx, o)
	}
	if err := insertOccurrence(ctx, tx, o); err != nil {
		return err
	}
	if o.Manual {
		return nil
	}
	return lookedAt(ctx, tx, o.Schedule, o.Planned, 1)
}

func insertOccurrence(ctx context.Context, tx *transaction, o Occurrence) error {
	err := tx.change(ctx, &Happened{o.Planned}, `INSERT INTO occurrences (schedule, planned, fired, late_ms, outcome,
		run, reason, manual)
		SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM schedules WHERE seq = ?)
		ON CONFLICT (schedule, planned) DO NOTHING`,
		o.Schedule, nanos(o.Planned), nanos(o.Fired), o.LateMS, o.Outcome, o.Run, o.Reason, o.Manual, o.Schedule)
	if err != nil {
		return err
	}
	return tx.exec(ctx, `DELETE FROM occurrences WHERE schedule = ? AND outcome <> 'waiting' AND seq <=
		(SELECT seq FROM occurrences WHERE schedule = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)`, o.Schedule, o.Schedule,
		maxOccurrences)
}

// saveOccurrence gives an occurrence that waits its end. One that doesn't wait any more is a
// Conflict fault.
func saveOccurrence(ctx context.Context, tx *transaction, o Occurrence) error {
	return tx.change(ctx, fault.New(fault.Conflict, "the occurrence doesn't wait any more"),
		"UPDATE occurrences SET outcome = ?, run = ?, reason = ? WHERE seq = ? AND outcome = 'waiting'", o.Outcome,
		o.Run, o.Reason, o.Seq)
}

// lookedAt notes up to which planned time a schedule was looked at, and how many more occurrences
// it has had.
func lookedAt(ctx context.Context, tx *transaction, schedule int64, until time.Time, more int) error {
	return tx.change(ctx, fault.New(fault.NotFound, "the schedule was removed"),
		"UPDATE schedules SET until_planned = max(until_planned, ?), fired = fired + ? WHERE seq = ?", nanos(until),
		more, schedule)
}

const selectOccurrence = "SELECT seq, schedule, planned, fired, late_ms, outcome, run, reason, manual FROM occurrences"

func scanOccurrence(row scanner, o *Occurrence) error {
	return row.Scan(&o.Seq, &o.Schedule, stamp{&o.Planned}, stamp{&o.Fired}, &o.LateMS, &o.Outcome, &o.Run, &o.Reason,
		&o.Manual)
}

// List lists those of a schedule, the youngest first: before is of Behind, or 0 to begin. The limit is at most
// 1000; 0 is 1000.
func (s *Occurrences) List(ctx context.Context, schedule, before int64, limit int) ([]Occurrence, error) {
	before, err := s.core.seal.begin(inOccurrences, before)
	if err != nil {
		return nil, err
	}
	return list(ctx, s.core, "list occurrences", scanOccurrence,
		selectOccurrence+" WHERE schedule = ? AND seq < ? ORDER BY seq DESC LIMIT ?", schedule, below(before),
		atMost(limit))
}

// Behind returns where the page begins that goes on behind a row. It tells nothing of how many rows there are.
func (s *Occurrences) Behind(row Occurrence) int64 { return s.core.seal.number(inOccurrences, row.Seq) }

// Waiting returns the occurrences of a schedule that wait, the oldest first; 0: those of
// all schedules.
func (s *Occurrences) Waiting(ctx context.Context, schedule int64) ([]Occurrence, error) {
	return list(ctx, s.core, "list occurrences", scanOccurrence,
		selectOccurrence+" WHERE outcome = 'waiting' AND (schedule = ? OR ? = 0) ORDER BY schedule, seq", schedule,
		schedule)
}

// Last returns the youngest occurrence of each of the schedules that has one, by Seq.
func (s *Occurrences) Last(ctx context.Context, schedules []int64) (map[int64]Occurrence, error) {
	last := map[int64]Occurrence{}
	for _, seq := range schedules {
		rows, err := list(ctx, s.core, "read occurrences", scanOccurrence,
			selectOccurrence+" WHERE schedule = ? ORDER BY seq DESC LIMIT 1", seq)
		if err != nil {
			return nil, err
		}
		for _, o := range rows {
			last[seq] = o
		}
	}
	return last, nil
}
