package store

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Session is a conversation whose turns are runs: those with its ID as their Session.
type Session struct {
	Seq       int64 // given by the store: it grows
	ID        string
	Unit      string
	Version   string // of the unit
	Team      string // that owns it; "" is access.DefaultTeam. Insert alone writes it, and MadeBy
	MadeBy    string // the name of the token with which it was made; "" for none
	Turns     int    // how many it has had
	Closed    bool   // there will be no further turn
	Reason    string // why it is closed
	CreatedAt time.Time
	UsedAt    time.Time
	Private   []byte // JSON for the orchestrator alone
}

// Sessions keeps the conversations of agents.
type Sessions struct{ core *core }

// Insert stores a new session. If its id exists already, the error is a Conflict fault.
func (s *Sessions) Insert(ctx context.Context, session Session) error {
	return s.core.change(ctx, "insert session", func(ctx context.Context, tx *transaction) error {
		const insert = `INSERT INTO sessions (id, unit, version, team, made_by, turns, closed, reason, created_at,
			used_at, private)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`
		return tx.change(ctx, fault.New(fault.Conflict, "there is a session %.64s already", session.ID), insert,
			session.ID, session.Unit, session.Version, teamOf(session.Team), session.MadeBy, session.Turns,
			session.Closed, session.Reason, nanos(session.CreatedAt), nanos(session.UsedAt), session.Private)
	})
}

// Save writes Closed, Reason, UsedAt and Private of a session, and appends events to a
// run, all or nothing. With a run of "" there are none. A session or a run that isn't there is
// a NotFound fault.
func (s *Sessions) Save(ctx context.Context, session Session, run string, events ...Event) error {
	return s.core.change(ctx, "save session", func(ctx context.Context, tx *transaction) error {
		if err := saveSession(ctx, tx, session); err != nil || run == "" || len(events) == 0 {
			return err
		}
		seq, err := seqOf(ctx, tx, run)
		if err != nil {
			return err
		}
		return addEvents(ctx, tx, seq, events)
	})
}

// SaveTurn is Save, and Runs.Save for a run that is a turn of the session, all or nothing.
func (s *Sessions) SaveTurn(ctx context.Context, session Session, turn Run, events ...Event) error {
	return s.core.change(ctx, "save turn", func(ctx context.Context, tx *transaction) error {
		if err := saveSession(ctx, tx, session); err != nil {
			return err
		}
		return save(ctx, tx, turn, events)
	})
}

func saveSession(ctx context.Context, tx *transaction, session Session) error {
	return tx.change(ctx, UnknownSession(session.ID),
		"UPDATE sessions SET closed = ?, reason = ?, used_at = ?, private = ? WHERE id = ?",
		session.Closed, session.Reason, nanos(session.UsedAt), session.Private, session.ID)
}

// countTurn notes the turn of a session that a new run is.
func countTurn(ctx context.Context, tx *transaction, r Run) error {
	if r.Session == "" {
		return nil
	}
	return tx.exec(ctx, "UPDATE sessions SET turns = ?, used_at = ? WHERE id = ?", r.Turn, nanos(r.CreatedAt),
		r.Session)
}

const selectSession = "SELECT seq, id, unit, version, team, made_by, turns, closed, reason, created_at, used_at, " +
	"private FROM sessions"

func scanSession(row scanner, s *Session) error {
	return row.Scan(&s.Seq, &s.ID, &s.Unit, &s.Version, &s.Team, &s.MadeBy, &s.Turns, &s.Closed, &s.Reason,
		stamp{&s.CreatedAt},
		stamp{&s.UsedAt}, &s.Private)
}

// Get returns a session, or a NotFound fault.
func (s *Sessions) Get(ctx context.Context, id string) (Session, error) {
	session, err := find(ctx, s.core.readers, scanSession, UnknownSession(id), selectSession+" WHERE id = ?", id)
	return session, s.core.explain(ctx, "read session", err)
}

// UnknownSession is the NotFound fault of a session that there isn't.
func UnknownSession(id string) error {
	return fault.New(fault.NotFound, "there is no session %.64s", id).WithHint("`aod agent sessions` lists them")
}

// SessionFilter selects sessions.
type SessionFilter struct {
	Unit  string // "": of all
	Open  bool   // only those that aren't closed
	Owned Owned  // by whom
	After int64  // of Behind: only those behind that session; 0: from the newest on
	Limit int    // at most 1000; 0 is 1000
}

// List lists sessions, the newest first.
func (s *Sessions) List(ctx context.Context, f SessionFilter) ([]Session, error) {
	before, err := s.core.seal.begin(inSessions, f.After)
	if err != nil {
		return nil, err
	}
	of := statement{selectSession + " WHERE seq < ?", []any{below(before)}}
	if f.Unit != "" {
		of = of.then(" AND unit = ?", f.Unit)
	}
	if f.Open {
		of = of.then(" AND closed = 0")
	}
	of = f.Owned.narrowed("sessions", of).then(" ORDER BY seq DESC LIMIT ?", atMost(f.Limit))
	return list(ctx, s.core, "list sessions", scanSession, of.text, of.args...)
}

// Behind returns where the page begins that goes on behind a row. It tells nothing of how many rows there are.
func (s *Sessions) Behind(row Session) int64 { return s.core.seal.number(inSessions, row.Seq) }

// spentSessions are closed sessions that were last used before a time and whose turns are over.
const spentSessions = ` FROM sessions WHERE closed = 1 AND used_at < ?
	AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.session = sessions.id AND runs.session <> '' AND NOT runs.finished)`

// Forget removes closed sessions of somebody that were last used before a time and whose turns are
// over, and returns how many. Their runs stay.
func (s *Sessions) Forget(ctx context.Context, owned Owned, before time.Time) (removed int64, err error) {
	err = s.core.change(ctx, "forget sessions", func(ctx context.Context, tx *transaction) (err error) {
		of := owned.narrowed("sessions", statement{"DELETE" + spentSessions, []any{nanos(before)}})
		removed, err = tx.rows(ctx, of.text, of.args...)
		return err
	})
	return removed, err
}

// Spent returns how many sessions Forget would remove.
func (s *Sessions) Spent(ctx context.Context, owned Owned, before time.Time) (n int64, err error) {
	of := owned.narrowed("sessions", statement{"SELECT count(*)" + spentSessions, []any{nanos(before)}})
	err = s.core.readers.QueryRowContext(ctx, of.text, of.args...).Scan(&n)
	return n, s.core.explain(ctx, "count sessions", err)
}
