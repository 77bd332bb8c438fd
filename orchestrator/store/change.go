package store

import (
	"context"
	"time"
)

// A run that nobody called gets a number with each state that it enters and that changes it: the
// time of that, or more, so that what is stored later has a greater number whatever the clock did.

// stateEvent is the type of the events that tell of a new state.
const stateEvent = "state"

// enteredAt returns the time of the last of the events that tell of a change, or the fallback.
func enteredAt(events []Event, fallback time.Time) time.Time {
	for _, e := range events {
		if e.Type == stateEvent && !e.Quiet {
			fallback = e.At
		}
	}
	return fallback
}

// nextChange returns the number of a change that is being stored, and 0 where there is none to be
// given: at the zero time, and to a run that another one called.
func nextChange(ctx context.Context, tx *transaction, r Run, at time.Time) (number int64, err error) {
	if r.Parent != "" || at.IsZero() {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, "UPDATE totals SET changed_at = max(changed_at + 1, ?) RETURNING changed_at",
		nanos(at)).Scan(&number)
	return number, err
}

// addChange remembers the state in which a change leaves a run.
func addChange(ctx context.Context, tx *transaction, seq, number int64, state string) error {
	if number == 0 {
		return nil
	}
	return tx.exec(ctx, "INSERT INTO changes (run, at, state) VALUES (?, ?, ?)", seq, number, state)
}
