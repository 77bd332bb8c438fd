package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Insert stores a new run with its first events and its key, all or nothing. If the key is
// taken, nothing is stored and the error is a *Taken; so it is with an occurrence that is stored
// already and a *Happened. A run whose id exists already is a
// Conflict fault.
func (s *Store) Insert(ctx context.Context, r Run, key Key, events ...Event) error {
	if r.ID == "" || r.CreatedAt.IsZero() {
		return errors.New("insert run: a run needs an id and the time of its creation")
	}
	if len(key.Value) > maxKey {
		return fault.New(fault.Input, "the idempotency key has %d bytes; %d are allowed", len(key.Value), maxKey).
			WithHint("use a shorter one, such as a UUID")
	}
	return s.change(ctx, "insert run",
		func(ctx context.Context, tx *transaction) error { return insert(ctx, tx, r, key, events) })
}

// Save updates a run and appends events, all or nothing. It writes State, Finished,
// FinishedAt, DiskBytes, Record, Private and, unless nil, Output. The rest stays as Insert
// wrote it. With an event of type "state" that is not Quiet it is a change, see Changed. The error is a NotFound fault
// if there is no such run.
func (s *Store) Save(ctx context.Context, r Run, events ...Event) error {
	return s.change(ctx, "save run",
		func(ctx context.Context, tx *transaction) error { return save(ctx, tx, r, events) })
}

// Append appends events to a run, all or none. The error is a NotFound fault if there is no
// such run.
func (s *Store) Append(ctx context.Context, run string, events ...Event) error {
	return s.changeRun(ctx, "append events", run, func(ctx context.Context, tx *transaction, seq int64) error {
		return addEvents(ctx, tx, seq, events)
	})
}

// Delete removes runs with their events, keys and metadata, all or none. Unknown ids are no
// error. If one of the runs hasn't finished, the error is a Conflict fault. Other writes
// wait meanwhile: delete some hundred at a time.
func (s *Store) Delete(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.change(ctx, "delete runs",
		func(ctx context.Context, tx *transaction) error { return remove(ctx, tx, ids) })
}

func insert(ctx context.Context, tx *transaction, r Run, key Key, events []Event) error {
	changed, err := nextChange(ctx, tx, r, enteredAt(events, r.CreatedAt))
	if err != nil {
		return err
	}
	seq, err := insertRow(ctx, tx, r, changed)
	if err != nil {
		return err
	}
	if key.Value != "" {
		if err := take(ctx, tx, key, seq); err != nil {
			return err
		}
	}
	if r.Input != nil {
		if err := tx.exec(ctx, "INSERT INTO inputs (run, data) VALUES (?, ?)", seq, r.Input); err != nil {
			return err
		}
	}
	if err := setOutput(ctx, tx, seq, r.Output); err != nil {
		return err
	}
	if err := errors.Join(addChange(ctx, tx, seq, changed, r.State), addMetadata(ctx, tx, seq, r),
		countTurn(ctx, tx, r), addOccurrence(ctx, tx, r)); err != nil {
		return err
	}
	for _, step := range r.Steps {
		if err := keepStep(ctx, tx, seq, step); err != nil {
			return err
		}
	}
	for _, p := range r.Pushes {
		if _, err := putPush(ctx, tx, seq, p, p.ID); err != nil {
			return err
		}
	}
	return addEvents(ctx, tx, seq, events)
}

func addMetadata(ctx context.Context, tx *transaction, seq int64, r Run) error {
	for key, value := range r.Metadata {
		err := tx.exec(ctx, "INSERT INTO metadata (run, key, value, created_at) VALUES (?, ?, ?, ?)", seq, key, value,
			nanos(r.CreatedAt))
		if err != nil {
			return err
		}
	}
	return nil
}

func insertRow(ctx context.Context, tx *transaction, r Run, changed int64) (seq int64, err error) {
	return find(ctx, tx, scanValue[int64], fault.New(fault.Conflict, "there is a run %.64s already", r.ID),
		`INSERT INTO runs (id, unit, kind, parent, root, session, turn, schedule, context, made_by, state, finished,
			created_at, changed_at, finished_at, disk_bytes, record, private)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING seq`,
		r.ID, r.Unit, r.Kind, r.Parent, r.Root, r.Session, r.Turn, r.Schedule, r.Context, r.MadeBy, r.State, r.Finished,
		nanos(r.CreatedAt), changed, nanos(r.FinishedAt), r.DiskBytes, r.Record, r.Private)
}

func save(ctx context.Context, tx *transaction, r Run, events []Event) error {
	changed, err := nextChange(ctx, tx, r, enteredAt(events, time.Time{}))
	if err != nil {
		return err
	}
	seq, err := find(ctx, tx, scanValue[int64], UnknownRun(r.ID),
		`UPDATE runs SET state = ?, finished = ?, changed_at = max(changed_at, ?), finished_at = ?, disk_bytes = ?,
			record = ?, private = ? WHERE id = ? RETURNING seq`,
		r.State, r.Finished, changed, nanos(r.FinishedAt), r.DiskBytes, r.Record, r.Private, r.ID)
	if err != nil {
		return err
	}
	if err := errors.Join(addChange(ctx, tx, seq, changed, r.State), setOutput(ctx, tx, seq, r.Output)); err != nil {
		return err
	}
	return addEvents(ctx, tx, seq, events)
}

func setOutput(ctx context.Context, tx *transaction, seq int64, output []byte) error {
	if output == nil {
		return nil
	}
	return tx.exec(ctx,
		"INSERT INTO outputs (run, data) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET data = excluded.data", seq,
		output)
}

func seqOf(ctx context.Context, tx *transaction, id string) (seq int64, err error) {
	return find(ctx, tx, scanValue[int64], UnknownRun(id), "SELECT seq FROM runs WHERE id = ?", id)
}

func remove(ctx context.Context, tx *transaction, ids []string) error {
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	var open string
	err = tx.QueryRowContext(ctx,
		"SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(?)) AND NOT finished LIMIT 1", string(list)).
		Scan(&open)
	if err == nil {
		return fault.New(fault.Conflict, "run %.64s goes on", open).WithHint("cancel it, or wait for its end")
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return tx.exec(ctx, "DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?))", string(list))
}
