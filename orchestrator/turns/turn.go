package turns

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Turn is a run's place among the turns of its session. That of a run without one, or with one for itself alone, is
// nil.
type Turn struct {
	run     *run.Run
	session *Session
}

// Attach makes a new run the next turn of a session, which admits it; nil: of none. A unit with sessions that is run
// without one gets one for this turn alone.
func (r *Registry) Attach(to *run.Run, s *Session) *Turn {
	if s != nil {
		to.Record.Session, to.Record.Turn = s.ID(), s.NextTurn()
		r.giveSession(to)
		return &Turn{to, s}
	}
	if _, _, err := r.Conversation(to.Unit); err == nil {
		to.Session = single(to, nil)
	}
	return nil
}

// giveSession gives a run the session that its record names, and lets it work on the project of that.
func (r *Registry) giveSession(to *run.Run) {
	id := to.Record.Session
	dir := r.opts.Dir(id)
	to.Session = &run.Session{ID: id, Turn: to.Record.Turn, Dir: dir, Project: hasProject(dir)}
	to.Project = to.Session.Project
}

// single returns a session for this turn alone, of which the kind kept something.
func single(of *run.Run, saved json.RawMessage) *run.Session {
	return &run.Session{ID: of.ID, Turn: 1, Dir: filepath.Join(of.Dir, "session"), Single: true, Saved: saved}
}

// Reattach makes a run that an earlier process accepted a turn of its session again.
func (s *Sessions) Reattach(ctx context.Context, to *run.Run, saved json.RawMessage) (*Turn, error) {
	id := to.Record.Session
	if id == "" {
		if _, _, err := s.registry.Conversation(to.Unit); err == nil {
			to.Session = single(to, saved)
		}
		return nil, nil
	}
	s.registry.giveSession(to)
	known := s.registry.Find(id)
	if known == nil {
		row, err := s.opts.Store.Sessions.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		known = s.restore(ctx, row) // it was closed while its turns went on
	}
	known.Rejoin(to.ID, to.Record.Turn)
	to.Session.Saved = known.Row().Private
	return &Turn{to, known}, nil
}

// Await waits until the turns before are over, and there is room for the container of the
// session. Its error is the cause that ctx ended with.
func (t *Turn) Await(ctx context.Context) error {
	if t == nil {
		return nil
	}
	saved, err := t.session.Await(ctx, t.run.ID)
	if err == nil {
		t.run.Session.Saved = saved
	}
	return err
}

// Rows store turns with what they leave of their sessions.
type Rows interface {
	Save(ctx context.Context, session store.Session, run string, events ...store.Event) error
	SaveTurn(ctx context.Context, session store.Session, turn store.Run, events ...store.Event) error
}

// Commit stores what a turn has left of its session, and in the same transaction its run, unless that is nil, and
// events of it.
func (t *Turn) Commit(
	ctx context.Context, to Rows, saved json.RawMessage, row *store.Run, events ...store.Event,
) error {
	session := t.session.Keep(saved)
	if row == nil {
		return to.Save(ctx, session, t.run.ID, events...)
	}
	return to.SaveTurn(ctx, session, *row, events...)
}

// CloseIfOver closes the session of a turn after which there can be none, as soon as that is known.
func (t *Turn) CloseIfOver() {
	if t != nil && t.run.Session.Over != "" {
		t.session.Close(t.run.Session.Over)
	}
}

// Leave lets the next turn begin, and removes what a closed session had. Of a run that isn't over it does nothing:
// the next process goes on with it.
func (t *Turn) Leave() {
	if t != nil && t.run.Over() {
		t.session.Leave(t.run.ID)
	}
}
