package turns

import (
	"context"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// SessionsOptions are what Sessions work with.
type SessionsOptions struct {
	Home  string // the directory that has all
	Store *store.Store
	Files *records.Files
	Units run.Units
	// Admits returns a fault while no session is begun or ended, Permits one of a unit that may not be run.
	Admits  func(ctx context.Context) error
	Permits func(u *unit.Unit) error
}

// Sessions are those of a server, as its clients have them.
type Sessions struct {
	registry *Registry
	opts     SessionsOptions
}

// NewSessions returns the Sessions of which a registry has those that aren't over.
func NewSessions(registry *Registry, opts SessionsOptions) *Sessions {
	return &Sessions{registry: registry, opts: opts}
}

// Create begins a session with the newest version of a unit. Its turns work on the
// project that the files hold; there are no others. Nothing is started before the first turn.
// Sessions takes the files over, which may be nil. The error is a Conflict fault of a unit
// that has no sessions, and a Busy one where too many are open.
func (s *Sessions) Create(ctx context.Context, name string, files *spool.Spool) (_ api.Session, err error) {
	defer func() { err = errors.Join(err, files.Remove()) }()
	if err := s.opts.Admits(ctx); err != nil {
		return api.Session{}, err
	}
	u, err := s.opts.Units.Get(ctx, name)
	if err != nil {
		return api.Session{}, err
	}
	begun, err := s.begin(u, access.OwnerOf(ctx))
	if err != nil {
		return api.Session{}, err
	}
	row := begun.Row()
	err = s.placeProject(ctx, u, row.ID, files.Project())
	if err == nil {
		err = s.opts.Store.Sessions.Insert(store.Audit(ctx, audited(row, "begin", "")), row)
	}
	if err != nil {
		s.registry.Remove(begun)
		return api.Session{}, errors.Join(err, safefs.RemoveTree(s.registry.opts.Dir(row.ID)))
	}
	s.registry.opts.Logger.Info("session begun", "session", row.ID, "unit", u.Name)
	return s.registry.Show(row), nil
}

// begin takes in a session with a unit that belongs to somebody, which isn't stored yet.
func (s *Sessions) begin(u *unit.Unit, owner access.Owner) (*Session, error) {
	if err := s.opts.Permits(u); err != nil {
		return nil, err
	}
	kind, terms, err := s.registry.Conversation(u)
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
	return s.registry.Begin(store.Session{
		ID: id, Unit: u.Name, Version: u.Version, Team: owner.Team, MadeBy: owner.By, CreatedAt: now, UsedAt: now,
	}, kind, terms)
}

// Offers reports whether a session with a unit can be begun.
func (s *Sessions) Offers(u *unit.Unit) bool {
	_, terms, err := s.registry.Conversation(u)
	return err == nil && !terms.Alone && s.opts.Permits(u) == nil
}

// Get returns a session, also one that is closed, or a NotFound fault.
func (s *Sessions) Get(ctx context.Context, id string) (api.Session, error) {
	row, err := s.row(ctx, id)
	if err != nil {
		return api.Session{}, err
	}
	return s.registry.Show(row), nil
}

// row returns what is stored of a session that the client of ctx may know of.
func (s *Sessions) row(ctx context.Context, id string) (store.Session, error) {
	row, err := s.opts.Store.Sessions.Get(ctx, id)
	if err == nil && !sees(ctx, row) {
		return store.Session{}, store.UnknownSession(id)
	}
	return row, err
}

// sees reports whether the client of ctx may know of a session.
func sees(ctx context.Context, row store.Session) bool {
	return access.Sees(ctx, access.Owner{Team: row.Team, By: row.MadeBy})
}

// audited is what somebody did with a session.
func audited(row store.Session, verb, detail string) store.Audited {
	return store.Audited{Team: row.Team, Verb: verb, Noun: "session", Object: row.ID, Detail: detail}
}

// Filter selects sessions.
type Filter struct {
	Unit  string // "": of all
	Open  bool   // only those that aren't closed
	After int64  // as a page before had it
	Limit int    // 1..1000; 0 is 100
}

// List lists sessions, the newest first.
func (s *Sessions) List(ctx context.Context, f Filter) (api.SessionPage, error) {
	limit, err := api.PageLimit(f.Limit)
	if err != nil {
		return api.SessionPage{}, err
	}
	rows, err := s.opts.Store.Sessions.List(ctx, store.SessionFilter{
		Unit: f.Unit, Open: f.Open, Owned: store.OwnedFor(ctx), After: f.After, Limit: limit,
	})
	page := api.SessionPage{Sessions: make([]api.Session, 0, len(rows))}
	for _, row := range rows {
		page.Sessions = append(page.Sessions, s.registry.Show(row))
	}
	if len(rows) == limit {
		page.Next = new(s.opts.Store.Sessions.Behind(rows[limit-1]))
	}
	return page, err
}

// Close ends a session: its turns are cancelled, and what lives on between them is
// removed after the last one. One that is closed stays as it is.
func (s *Sessions) Close(ctx context.Context, id, reason string) (api.Session, error) {
	if err := s.opts.Admits(ctx); err != nil {
		return api.Session{}, err
	}
	row, err := s.row(ctx, id)
	if err != nil {
		return api.Session{}, err
	}
	if known := s.registry.Find(id); known != nil {
		if err := s.opts.Store.Audits.Did(ctx, audited(row, "end", reason)); err != nil {
			return api.Session{}, err
		}
		known.Close(reason)
		row = known.Row()
	}
	return s.registry.Show(row), nil
}

// Restore takes in the sessions that an earlier process had open.
func (s *Sessions) Restore(ctx context.Context) error {
	for after := int64(0); ; {
		rows, err := s.opts.Store.Sessions.List(ctx, store.SessionFilter{Open: true, After: after})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			s.restore(ctx, row)
			after = s.opts.Store.Sessions.Behind(row)
		}
	}
}

// restore takes in a session. One whose version of its unit is gone is closed.
func (s *Sessions) restore(ctx context.Context, row store.Session) *Session {
	u, err := s.opts.Units.Version(ctx, row.Unit, row.Version)
	if err != nil {
		return s.registry.Restore(row, nil, run.SessionTerms{}, err)
	}
	kind, terms, err := s.registry.Conversation(u)
	return s.registry.Restore(row, kind, terms, err)
}

// Choose returns a session, and its unit in the version with which it stays, for a submission to a unit of a
// name; "" is any.
func (s *Sessions) Choose(ctx context.Context, id, name string) (*Session, *unit.Unit, error) {
	known := s.registry.Find(id)
	if known == nil {
		row, err := s.row(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, Closed(row)
	}
	row := known.Row()
	if !sees(ctx, row) {
		return nil, nil, store.UnknownSession(id)
	}
	if name != "" && name != row.Unit {
		return nil, nil, fault.New(fault.Conflict, "the session is one of %q, not of %q", row.Unit, name).
			WithHint("begin a session with %q, or send the message to %q", name, row.Unit)
	}
	if err := access.CheckUnit(ctx, row.Unit); err != nil {
		return nil, nil, err
	}
	if err := known.Takes(); err != nil {
		return nil, nil, err
	}
	u, err := s.opts.Units.Version(ctx, row.Unit, row.Version)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Conflict, err,
			"the session can't be resumed: its version of %q is gone", row.Unit).
			WithHint("begin a new one")
	}
	return known, u, nil
}

// Forget closes sessions that nobody has used since a time, and removes what is stored
// of those that are closed.
func (s *Sessions) Forget(ctx context.Context, before time.Time) error {
	s.registry.CloseUnused(before, "it wasn't used for as long as runs are kept")
	_, err := s.opts.Store.Sessions.Forget(ctx, store.Owned{}, before)
	return err
}

// errNoSessions is the fault of a unit that is run alone.
func errNoSessions(name string) error {
	return fault.New(fault.Conflict, "%q has no sessions: each of its runs stands for itself", name).
		WithHint("only units with kind: agent and mode: interactive have sessions; run this one")
}
