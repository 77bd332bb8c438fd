package store

import (
	"context"
	"fmt"
	"time"
)

// Event is one event of a run.
type Event struct {
	Seq  int64 // 1, 2, 3, ... within the run, given by the store
	At   time.Time
	Type string
	Data []byte // JSON
	// Quiet is for a state that is no change of its run, see Changed. It is not stored.
	Quiet bool
}

// bytes implements large.
func (e Event) bytes() int { return len(e.Data) }

// most implements large.
func (Event) most() int { return pageBytes }

// Events returns the events of a run whose Seq is greater than after, in order: at most
// limit, never more than 1000, and fewer where they are large. A limit of 0 means 1000. An unknown
// run has no events.
func (s *Store) Events(ctx context.Context, run string, after int64, limit int) ([]Event, error) {
	return paged(ctx, s, "read events", scanEvent, selectEvents, run, after, atMost(limit))
}

const selectEvents = `SELECT seq, at, type, data FROM events
	WHERE run = (SELECT seq FROM runs WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?`

// LastEvent returns the last event of a run. An unknown run has the zero Event.
func (s *Store) LastEvent(ctx context.Context, run string) (Event, error) {
	const last = `SELECT seq, at, type, data FROM events WHERE run = (SELECT seq FROM runs WHERE id = ?)
		ORDER BY seq DESC LIMIT 1`
	found, err := list(ctx, s, "read events", scanEvent, last, run)
	if err != nil || len(found) == 0 {
		return Event{}, err
	}
	return found[0], nil
}

// Told returns those of a run's events of one type that are indexed, "message", "artifact" and
// "attempt", whose Seq is greater than after, in order: at most limit, never more than 1000, and fewer
// where they are large. A limit of 0 means 1000. An unknown run has none.
func (s *Store) Told(ctx context.Context, run, kind string, after int64, limit int) ([]Event, error) {
	text, known := selectTold[kind]
	if !known {
		return nil, fmt.Errorf("read events: those of the type %q are not indexed", kind)
	}
	return paged(ctx, s, "read events", scanEvent, text, run, after, atMost(limit))
}

// selectTold are statements by the type.
var selectTold = map[string]string{
	"message": toldOf("message"), "artifact": toldOf("artifact"),
	"attempt": toldOf("attempt"),
}

func toldOf(kind string) string {
	return "SELECT seq, at, type, data FROM events INDEXED BY events_told WHERE run = (SELECT seq FROM runs WHERE id " +
		"= ?) AND type = '" + kind +
		"' AND type IN ('message', 'artifact', 'attempt') AND seq > ? ORDER BY seq LIMIT ?" // the index's own condition
}

// atMost bounds a limit that the program set itself.
func atMost(limit int) int {
	if limit <= 0 || limit > maxLimit {
		return maxLimit
	}
	return limit
}

func scanEvent(row scanner, e *Event) error {
	return row.Scan(&e.Seq, stamp{&e.At}, &e.Type, &e.Data)
}

// addEvents continues the run's numbers, and stores what pushes are to tell of the events. Only the
// writer may call it.
func addEvents(ctx context.Context, tx *transaction, seq int64, events []Event) error {
	const insert = `INSERT INTO events (run, seq, at, type, data)
		VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM events WHERE run = ?1), ?2, ?3, ?4)`
	for _, e := range events {
		if err := tx.exec(ctx, insert, seq, nanos(e.At), e.Type, e.Data); err != nil {
			return err
		}
		if err := addDelivery(ctx, tx, seq, e); err != nil {
			return err
		}
	}
	return nil
}
