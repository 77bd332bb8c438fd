package orchestrator

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/orchestrator/turns"
)

// conversation returns how the sessions of a unit live. Its error is a fault of one that has
// none.
func (l *loop) conversation(u *unit.Unit) (run.Conversant, run.SessionTerms, error) {
	kind, err := l.kinds.Of(u)
	if err != nil {
		return nil, run.SessionTerms{}, err
	}
	talks, ok := kind.(run.Conversant)
	if !ok {
		return nil, run.SessionTerms{}, errNoSessions(u.Name)
	}
	terms, has, err := talks.Conversation(u)
	if err == nil && !has {
		err = errNoSessions(u.Name)
	}
	return talks, terms, err
}

// CreateSession begins a session with the newest version of a unit. Its turns work on the
// project that the files hold; there are no others. Nothing is started before the first turn.
// The Service takes the files over, which may be nil. The error is a Conflict fault of a unit
// that has no sessions, and a Busy one where too many are open.
func (s *Service) CreateSession(ctx context.Context, name string, files *spool.Spool) (_ api.Session, err error) {
	defer func() { err = errors.Join(err, files.Remove()) }()
	if err := s.admits(ctx); err != nil {
		return api.Session{}, err
	}
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return api.Session{}, err
	}
	begun, err := s.beginSession(u, access.ClientOf(ctx))
	if err != nil {
		return api.Session{}, err
	}
	row := begun.Row()
	err = s.placeSessionProject(ctx, u, row.ID, files.Project())
	if err == nil {
		err = s.store.InsertSession(ctx, row)
	}
	if err != nil {
		s.sessions.Remove(begun)
		return api.Session{}, errors.Join(err, safefs.RemoveTree(s.sessionPath(row.ID)))
	}
	s.logger.Info("session begun", "session", row.ID, "unit", u.Name)
	return s.sessions.Show(row), nil
}

// AgentTerms is what clients of A2A are told of a unit, and how it is spoken with.
type AgentTerms struct {
	Unit     api.Unit // without its schemas and its status
	Schema   []byte   // its schema.json
	Told     capsule.A2A
	Sessions bool // its runs can be turns of sessions
}

// AgentTerms returns those of a unit, or a NotFound fault: also of one that isn't among Units.
func (s *Service) AgentTerms(ctx context.Context, name string) (AgentTerms, error) {
	u, err := s.units.Get(ctx, name)
	if err == nil && !isShown(ctx, u) {
		err = fault.New(fault.NotFound, "there is no unit %s", fault.Quote(name))
	}
	if err != nil {
		return AgentTerms{}, err
	}
	terms := AgentTerms{Unit: s.info(u), Told: u.Policy.A2A}
	if terms.Schema, err = u.Schema(); err != nil {
		return terms, err
	}
	kind, err := s.kinds.Of(u)
	if err != nil {
		return terms, err
	}
	talks, ok := kind.(run.Conversant)
	if !ok {
		return terms, nil
	}
	conversation, has, err := talks.Conversation(u)
	terms.Sessions = has && !conversation.Alone
	return terms, err
}

// beginSession takes in a session with a unit, made with the token of a name, which isn't stored yet.
func (s *Service) beginSession(u *unit.Unit, by string) (*turns.Session, error) {
	if err := s.permits(u); err != nil {
		return nil, err
	}
	kind, terms, err := s.conversation(u)
	if err == nil && terms.Alone {
		err = errNoSessions(u.Name)
	}
	if err != nil {
		return nil, err
	}
	id, err := run.NewID()
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	return s.sessions.Begin(store.Session{
		ID: id, Unit: u.Name, Version: u.Version, MadeBy: by, CreatedAt: now,
		UsedAt: now,
	}, kind, terms)
}

// Session returns a session, also one that is closed, or a NotFound fault.
func (s *Service) Session(ctx context.Context, id string) (api.Session, error) {
	row, err := s.session(ctx, id)
	if err != nil {
		return api.Session{}, err
	}
	return s.sessions.Show(row), nil
}

// session returns what is stored of a session that the client of ctx may know of.
func (s *Service) session(ctx context.Context, id string) (store.Session, error) {
	row, err := s.store.Session(ctx, id)
	if err == nil && !access.Sees(ctx, row.MadeBy) {
		return store.Session{}, store.UnknownSession(id)
	}
	return row, err
}

// SessionFilter selects sessions.
type SessionFilter struct {
	Unit  string // "": of all
	Open  bool   // only those that aren't closed
	After int64  // as a page before had it
	Limit int    // 1..1000; 0 is 100
}

// SessionList lists sessions, the newest first.
func (s *Service) SessionList(ctx context.Context, f SessionFilter) (api.SessionPage, error) {
	limit, err := api.PageLimit(f.Limit)
	if err != nil {
		return api.SessionPage{}, err
	}
	rows, err := s.store.Sessions(ctx, store.SessionFilter{
		Unit: f.Unit, Open: f.Open, MadeBy: access.OnlyOwn(ctx),
		After: f.After, Limit: limit,
	})
	page := api.SessionPage{Sessions: make([]api.Session, 0, len(rows))}
	for _, row := range rows {
		page.Sessions = append(page.Sessions, s.sessions.Show(row))
	}
	if len(rows) == limit {
		page.Next = &rows[limit-1].Seq
	}
	return page, err
}

// CloseSession ends a session: its turns are cancelled, and what lives on between them is
// removed after the last one. One that is closed stays as it is.
func (s *Service) CloseSession(ctx context.Context, id, reason string) (api.Session, error) {
	if err := s.admits(ctx); err != nil {
		return api.Session{}, err
	}
	row, err := s.session(ctx, id)
	if err != nil {
		return api.Session{}, err
	}
	if known := s.sessions.Find(id); known != nil {
		known.Close(reason)
		row = known.Row()
	}
	return s.sessions.Show(row), nil
}

// saveSession stores a session as it is now.
func (l *loop) saveSession(row store.Session) error {
	return l.persist(l.life, "save session", row.ID, func() error {
		err := l.journal.SaveSession(context.WithoutCancel(l.life), row, "")
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	})
}

// cancelTurn cancels a run, unless it has ended.
func (l *loop) cancelTurn(run, reason string) { _, _ = l.Cancel(l.life, run, reason) }

// sessionPath is where a session has its files; of "", all sessions.
func (l *loop) sessionPath(id string) string {
	return filepath.Join(l.home.Dir, layout.Sessions, id)
}

// restoreSessions takes in the sessions that an earlier process had open.
func (s *Service) restoreSessions(ctx context.Context) error {
	for after := int64(0); ; {
		rows, err := s.store.Sessions(ctx, store.SessionFilter{Open: true, After: after})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			s.restoreSession(ctx, row)
			after = row.Seq
		}
	}
}

// restoreSession takes in a session. One whose version of its unit is gone is closed.
func (s *Service) restoreSession(ctx context.Context, row store.Session) *turns.Session {
	u, err := s.units.Version(ctx, row.Unit, row.Version)
	if err != nil {
		return s.sessions.Restore(row, nil, run.SessionTerms{}, err)
	}
	kind, terms, err := s.conversation(u)
	return s.sessions.Restore(row, kind, terms, err)
}

// sessionUnit returns the session of a submission, and its unit in the version with which it
// stays.
func (s *Service) sessionUnit(ctx context.Context, sub Submission) (*turns.Session, *unit.Unit, error) {
	known := s.sessions.Find(sub.Session)
	if known == nil {
		row, err := s.session(ctx, sub.Session)
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, turns.Closed(row)
	}
	row := known.Row()
	if !access.Sees(ctx, row.MadeBy) {
		return nil, nil, store.UnknownSession(sub.Session)
	}
	if sub.Unit != "" && sub.Unit != row.Unit {
		return nil, nil, fault.New(fault.Conflict, "the session is one of %q, not of %q", row.Unit, sub.Unit).
			WithHint("begin a session with %q, or send the message to %q", sub.Unit, row.Unit)
	}
	if err := known.Takes(); err != nil {
		return nil, nil, err
	}
	u, err := s.units.Version(ctx, row.Unit, row.Version)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Conflict, err,
			"the session can't be resumed: its version of %q can't be had any more", row.Unit).
			WithHint("begin a new one")
	}
	return known, u, nil
}

// forgetSessions closes sessions that nobody has used since a time, and removes what is stored
// of those that are closed.
func (s *Service) forgetSessions(ctx context.Context, before time.Time) error {
	s.sessions.CloseUnused(before, "it wasn't used for as long as runs are kept")
	_, err := s.store.ForgetSessions(ctx, before)
	return err
}

// errNoSessions is the fault of a unit that is run alone.
func errNoSessions(name string) error {
	return fault.New(fault.Conflict, "%q has no sessions: each of its runs stands for itself", name).
		WithHint("only units with kind: agent and mode: interactive have sessions; run this one")
}
