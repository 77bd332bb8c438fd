package orchestrator

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// seat makes a new run a turn of its session. A unit with sessions that is run without one gets
// one for this turn alone.
func (l *loop) seat(j *job, asked accepted) {
	if s := asked.session; s != nil {
		j.session = s
		j.Record.Session, j.Record.Turn = s.ID(), s.NextTurn()
		j.sit(s.ID())
		return
	}
	if _, _, err := l.conversation(asked.Unit); err == nil {
		j.Session = l.single(j)
	}
}

// sit makes the run a turn of a session, and lets it work on the project of that.
func (j *job) sit(id string) {
	dir := j.loop.sessionPath(id)
	j.Session = &run.Session{ID: id, Turn: j.Record.Turn, Dir: dir, Project: hasProject(dir)}
	j.Project = j.Session.Project
}

func (l *loop) single(j *job) *run.Session {
	return &run.Session{ID: j.ID, Turn: 1, Dir: filepath.Join(j.Dir, "session"), Single: true, Saved: j.private.Session}
}

// reseat makes a run that an earlier process accepted a turn of its session again.
func (s *Service) reseat(ctx context.Context, j *job) error {
	id := j.Record.Session
	if id == "" {
		if _, _, err := s.conversation(j.Unit); err == nil {
			j.Session = s.single(j)
		}
		return nil
	}
	j.sit(id)
	known := s.sessions.Find(id)
	if known == nil {
		row, err := s.store.Session(ctx, id)
		if err != nil {
			return err
		}
		known = s.restoreSession(ctx, row) // it was closed while its turns went on
	}
	j.session = known
	known.Rejoin(j.ID, j.Record.Turn)
	j.Session.Saved = known.Row().Private
	return nil
}

// awaitTurn waits until the turns before are over, and there is room for the container of the
// session. Its error is the cause that ctx ended with.
func (j *job) awaitTurn(ctx context.Context) error {
	if j.session == nil {
		return nil
	}
	saved, err := j.session.Await(ctx, j.ID)
	if err == nil {
		j.Session.Saved = saved
	}
	return err
}

// KeepSession implements run.Host.
func (j *job) KeepSession(saved json.RawMessage, told []api.AgentEvent) error {
	held := j.held.take()
	events := slices.Concat(held.events, toldEvents(told))
	err := j.loop.persist(j.loop.life, "keep session", j.ID,
		func() error { return j.keepSession(saved, held.row, events) })
	if err == nil {
		j.news.Notify()
	}
	return err
}

// keepSession stores what is saved of the session, and the run where it waits to be stored.
func (j *job) keepSession(saved json.RawMessage, held *store.Run, events []store.Event) error {
	ctx := context.WithoutCancel(j.loop.life)
	switch s := j.session; {
	case s != nil && held != nil:
		return j.loop.journal.SaveTurn(ctx, s.Keep(saved), *held, events...)
	case s != nil:
		return j.loop.journal.SaveSession(ctx, s.Keep(saved), j.ID, events...)
	}
	j.private.Session = saved
	row, err := j.row()
	if err != nil {
		return err
	}
	return j.loop.journal.Save(ctx, row, events...)
}

// KeepTurn implements run.Host.
func (j *job) KeepTurn(saved json.RawMessage, told []api.AgentEvent) {
	if j.session == nil {
		j.private.Session, saved = saved, nil // it is stored with the run
	}
	j.held.add(waiting{session: saved, events: toldEvents(told)})
}

func toldEvents(told []api.AgentEvent) []store.Event {
	now := time.Now().UTC()
	events := make([]store.Event, 0, len(told))
	for _, one := range told {
		events = append(events, newEvent(now, one))
	}
	return events
}

// noteOver closes the session of a turn after which there can be none, as soon as that is known.
func (j *job) noteOver() {
	if j.session != nil && j.Session.Over != "" {
		j.session.Close(j.Session.Over)
	}
}

// leaveSession lets the next turn begin, and removes what a closed session had.
func (j *job) leaveSession() {
	if j.session != nil && j.Over() { // else the next process goes on with it
		j.session.Leave(j.ID)
	}
}
