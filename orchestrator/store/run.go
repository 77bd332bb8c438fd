package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Run is a row: the searched columns, and documents that the store doesn't read. Times are
// kept to the nanosecond and come back in UTC.
type Run struct {
	ID         string // UUID v7: sorts by creation
	Unit       string
	Kind       string // "capsule", ...
	Parent     string // "" for a root
	Root       string
	Session    string // of which it is a turn; "" for none
	Turn       int    // its number in the session, from 1; 0 for none
	Schedule   string // of which it is an occurrence, by its name; "" for none
	Context    string // to which its client counts it; "" for none
	Team       string // that owns it; "" is access.DefaultTeam. Insert alone writes it, and MadeBy
	MadeBy     string // the name of the token with which it was made; "" for none
	Step       string // of the flow that asked for it, by its address; "" for none. Insert alone writes it
	State      string // "idle", "starting", "running", "completed", ...
	Outcome    string // "" while it goes on
	ErrorKind  string // "" without an error
	Finished   bool   // it won't change any more
	CreatedAt  time.Time
	StartedAt  time.Time // of the last attempt's program; zero before that
	FinishedAt time.Time // zero until Finished
	Tokens     int64     // of models, that were charged; its own alone
	Cost       int64     // of models, in billionths of the currency; its own alone
	DiskBytes  int64     // of its files and documents
	Record     []byte    // JSON; rewritten by every Save; small (no input, no output)
	Private    []byte    // JSON for the orchestrator alone; rewritten by every Save
	Input      []byte    // JSON; written by Insert only
	Output     []byte    // JSON; nil until there is one; Save with nil keeps the stored one

	// Metadata is what lists may search by. Insert alone writes it, and reads don't return
	// it: a caller that shows it keeps it in Record.
	Metadata map[string]string

	// Steps are those that the run begins with. Insert alone writes them.
	Steps []Step

	// With are further rows that stand with the run. Insert alone writes them.
	With []WithRun
}

// WithRun is a row that is stored together with a new run.
type WithRun interface {
	StoredWithRun()
	insertWith(ctx context.Context, tx *transaction, run int64) error
}

// Runs keeps the rows of runs. What it lists and sums up is in list.go.
type Runs struct{ core *core }

// Get returns a run with all its documents, or a NotFound fault.
func (s *Runs) Get(ctx context.Context, id string) (Run, error) {
	run, err := find(ctx, s.core.readers, scanWhole, UnknownRun(id), selectWhole+" WHERE runs.id = ?", id)
	return run, s.core.explain(ctx, "read run", err)
}

// Unfinished returns the runs that haven't finished, with all their documents, oldest
// first.
func (s *Runs) Unfinished(ctx context.Context) ([]Run, error) {
	return list(ctx, s.core, "read unfinished runs", scanWhole, selectUnfinished)
}

const (
	searched = "runs.id, runs.unit, runs.kind, runs.parent, runs.root, runs.session, runs.turn, runs.schedule, " +
		"runs.context, runs.team, runs.made_by, runs.step, runs.state, runs.outcome, runs.error_kind, runs.finished, " +
		"runs.created_at, runs.started_at, runs.finished_at, runs.disk_bytes, runs.tokens, runs.cost"
	selectWhole = "SELECT " + searched + `, runs.record, runs.private, inputs.data, outputs.data
		FROM runs LEFT JOIN inputs ON inputs.run = runs.seq LEFT JOIN outputs ON outputs.run = runs.seq`
	selectUnfinished = selectWhole + " WHERE runs.finished = 0 ORDER BY runs.created_at, runs.seq"
)

func scanWhole(row scanner, r *Run) error {
	return scanSearched(row, r, &r.Record, &r.Private, &r.Input, &r.Output)
}

// scanSearched scans the searched columns into r and the rest into more.
func scanSearched(row scanner, r *Run, more ...any) error {
	dest := []any{
		&r.ID, &r.Unit, &r.Kind, &r.Parent, &r.Root, &r.Session, &r.Turn, &r.Schedule, &r.Context, &r.Team, &r.MadeBy,
		&r.Step, &r.State, &r.Outcome, &r.ErrorKind, &r.Finished,
		stamp{&r.CreatedAt},
		stamp{&r.StartedAt},
		stamp{&r.FinishedAt},
		&r.DiskBytes, &r.Tokens, &r.Cost,
	}
	return row.Scan(append(dest, more...)...)
}

// Insert stores a new run with its first events and its key, all or nothing. If the key is
// taken, nothing is stored and the error is a *Taken; so it is with an occurrence that is stored
// already and a *Happened. A run whose id exists already is a
// Conflict fault.
func (s *Runs) Insert(ctx context.Context, r Run, key Key, events ...Event) error {
	if r.ID == "" || r.CreatedAt.IsZero() {
		return errors.New("insert run: a run needs an id and the time of its creation")
	}
	if len(key.Value) > maxKey {
		return fault.New(fault.Input, "the idempotency key has %d bytes; %d are allowed", len(key.Value), maxKey).
			WithHint("use a shorter one, such as a UUID")
	}
	return s.core.change(ctx, "insert run",
		func(ctx context.Context, tx *transaction) error { return insert(ctx, tx, r, key, events) })
}

// Save updates a run and appends events, all or nothing. It writes State, Outcome, ErrorKind, Finished,
// StartedAt, FinishedAt, DiskBytes, Tokens, Cost, Record, Private and, unless nil, Output. The rest stays as Insert
// wrote it. With an event of type "state" that is not Quiet it is a change, see Changed. The error is a NotFound fault
// if there is no such run.
func (s *Runs) Save(ctx context.Context, r Run, events ...Event) error {
	return s.core.change(ctx, "save run",
		func(ctx context.Context, tx *transaction) error { return save(ctx, tx, r, events) })
}

// Delete removes runs with their events, keys and metadata, all or none. Unknown ids are no
// error. If one of the runs hasn't finished, the error is a Conflict fault. Other writes
// wait meanwhile: delete some hundred at a time.
func (s *Runs) Delete(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.core.change(ctx, "delete runs",
		func(ctx context.Context, tx *transaction) error { return remove(ctx, tx, ids) })
}

// Erase is Delete with what was stored of the runs overwritten in the database. Store.Scrub goes on with the rest.
func (s *Runs) Erase(ctx context.Context, ids ...string) error {
	return s.core.change(ctx, "erase runs", func(ctx context.Context, tx *transaction) error {
		if err := tx.exec(ctx, "PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		return errors.Join(remove(ctx, tx, ids), tx.exec(ctx, "PRAGMA secure_delete = FAST"))
	})
}

// RerunsOf returns reruns of the runs of a tree, which may hold files of theirs: the first 100 of those that are owned
// so. It reads the records of all later runs of their units.
func (s *Runs) RerunsOf(ctx context.Context, root string, owned Owned) (ids []string, err error) {
	of := owned.narrowed("runs", statement{selectReruns, []any{root, root, root, root}}).then(" ORDER BY seq LIMIT 100")
	return list(ctx, s.core, "read reruns", scanValue[string], of.text, of.args...)
}

const selectReruns = `SELECT id FROM runs WHERE unit IN (SELECT unit FROM runs WHERE root = ?) AND root <> ?
	AND created_at >= (SELECT min(created_at) FROM runs WHERE root = ?)
	AND CASE WHEN json_valid(CAST(record AS TEXT)) THEN CAST(record AS TEXT) ->> 'rerun_of' END
		IN (SELECT id FROM runs WHERE root = ?)`

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
		countTurn(ctx, tx, r)); err != nil {
		return err
	}
	for _, step := range r.Steps {
		if err := keepStep(ctx, tx, seq, step); err != nil {
			return err
		}
	}
	for _, row := range r.With {
		if err := row.insertWith(ctx, tx, seq); err != nil {
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
		`INSERT INTO runs (id, unit, kind, parent, root, session, turn, schedule, context, team, made_by, step, state,
			outcome, error_kind, finished, created_at, changed_at, started_at, finished_at, disk_bytes, tokens, cost,
			record, private)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING RETURNING seq`,
		r.ID, r.Unit, r.Kind, r.Parent, r.Root, r.Session, r.Turn, r.Schedule, r.Context, teamOf(r.Team), r.MadeBy,
		r.Step, r.State, r.Outcome, r.ErrorKind, r.Finished, nanos(r.CreatedAt), changed, nanos(r.StartedAt),
		nanos(r.FinishedAt), r.DiskBytes, r.Tokens, r.Cost, r.Record, r.Private)
}

func save(ctx context.Context, tx *transaction, r Run, events []Event) error {
	changed, err := nextChange(ctx, tx, r, enteredAt(events, time.Time{}))
	if err != nil {
		return err
	}
	seq, err := find(ctx, tx, scanValue[int64], UnknownRun(r.ID),
		`UPDATE runs SET state = ?, outcome = ?, error_kind = ?, finished = ?, changed_at = max(changed_at, ?),
			started_at = ?, finished_at = ?, disk_bytes = ?, tokens = ?, cost = ?, record = ?, private = ?
		WHERE id = ? RETURNING seq`,
		r.State, r.Outcome, r.ErrorKind, r.Finished, changed, nanos(r.StartedAt), nanos(r.FinishedAt), r.DiskBytes,
		r.Tokens, r.Cost, r.Record, r.Private, r.ID)
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
