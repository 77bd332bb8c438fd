package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Event is one event of a run.
type Event struct {
	Seq  int64 // 1, 2, 3, ... within the run, given by the store
	At   time.Time
	Type string
	Data []byte // JSON
	// Quiet is for a state that isn't a change of its run, see Changed. It is not stored.
	Quiet bool
}

// NewEvent returns an event whose data is written as JSON: what encoding/json can't write is an empty object.
func NewEvent(at time.Time, kind string, data any) Event {
	raw, err := json.Marshal(data)
	if err != nil {
		raw = []byte("{}")
	}
	return Event{At: at, Type: kind, Data: raw}
}

// bytes implements large.
func (e Event) bytes() int { return len(e.Data) }

// most implements large.
func (Event) most() int { return pageBytes }

// Events keeps what is told of runs.
type Events struct{ core *core }

// List returns the events of a run whose Seq is greater than after, in order: at most
// limit, never more than 1000, and fewer where they are large. A limit of 0 means 1000. An unknown
// run has no events.
func (s *Events) List(ctx context.Context, run string, after int64, limit int) ([]Event, error) {
	return paged(ctx, s.core, "read events", scanEvent, selectEvents, run, after, atMost(limit))
}

const selectEvents = `SELECT seq, at, type, data FROM events
	WHERE run = (SELECT seq FROM runs WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?`

// Last returns the last event of a run. An unknown run has the zero Event.
func (s *Events) Last(ctx context.Context, run string) (Event, error) {
	const last = `SELECT seq, at, type, data FROM events WHERE run = (SELECT seq FROM runs WHERE id = ?)
		ORDER BY seq DESC LIMIT 1`
	found, err := list(ctx, s.core, "read events", scanEvent, last, run)
	if err != nil || len(found) == 0 {
		return Event{}, err
	}
	return found[0], nil
}

// Told returns those of a run's events of one type that are indexed, "message", "artifact" and
// "attempt", whose Seq is greater than after, in order: at most limit, never more than 1000, and fewer
// where they are large. A limit of 0 means 1000. An unknown run has none.
func (s *Events) Told(ctx context.Context, run, kind string, after int64, limit int) ([]Event, error) {
	text, known := selectTold[kind]
	if !known {
		return nil, fmt.Errorf("read events: those of the type %q are not indexed", kind)
	}
	return paged(ctx, s.core, "read events", scanEvent, text, run, after, atMost(limit))
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

// Append appends events to a run, all or none. The error is a NotFound fault if there is no
// such run.
func (s *Events) Append(ctx context.Context, run string, events ...Event) error {
	return s.core.changeRun(ctx, "append events", run, func(ctx context.Context, tx *transaction, seq int64) error {
		return addEvents(ctx, tx, seq, events)
	})
}

// AppendOnce appends events to a run and gives it a key that they are known by. If the run has
// the key already, nothing is stored, and fresh is false. The error is a NotFound fault if there is
// no such run, and a *Taken if the key has another fingerprint or run.
func (s *Events) AppendOnce(ctx context.Context, key Key, run string, events ...Event) (fresh bool, err error) {
	once := func(ctx context.Context, tx *transaction, seq int64) (err error) {
		if fresh, err = takeOnce(ctx, tx, key, run, seq); !fresh || err != nil {
			return err
		}
		return addEvents(ctx, tx, seq, events)
	}
	err = s.core.changeRun(ctx, "append events", run, once)
	return fresh && err == nil, err
}

// Teller has the events of runs: Events, or those of a memory.Journal.
type Teller interface {
	Told(ctx context.Context, run, kind string, after int64, limit int) ([]Event, error)
}

const toldPage = 200 // read at once

// EachTold goes through the events of a run that have one type, in their order, also when ctx ends. The
// error is the Teller's, or that of do.
func EachTold(ctx context.Context, t Teller, run, kind string, do func(Event) error) error {
	ctx = context.WithoutCancel(ctx)
	for after := int64(0); ; {
		events, err := t.Told(ctx, run, kind, after, toldPage)
		if err != nil {
			return err
		}
		for _, e := range events {
			after = e.Seq
			if err := do(e); err != nil {
				return err
			}
		}
		if !Full(events, toldPage) {
			return nil
		}
	}
}
