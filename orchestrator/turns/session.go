package turns

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// maxTurns is how many turns of a session aren't over: one that goes on, and ten that wait.
const maxTurns = 11

// Session is a conversation that isn't over. The registry's lock guards it.
type Session struct {
	registry *Registry
	row      store.Session
	kind     run.Conversant // nil: it can't be had any more
	terms    run.SessionTerms
	turns    []string // the runs that aren't over, in their order: the first one's turn it is
	live     bool     // a container may live on
	ending   bool     // that is being ended
	idle     *time.Timer

	admitting sync.Mutex // one turn after the other gets its number
}

// ID returns the session's id.
func (s *Session) ID() string { return s.row.ID }

// Row returns the session as it is now, and as it is stored.
func (s *Session) Row() store.Session {
	row, _ := s.now()
	return row
}

// now returns the session as it is now, and the runs of its turns that aren't over.
func (s *Session) now() (row store.Session, turns []string) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	return s.row, slices.Clone(s.turns)
}

// Takes returns a fault if the session takes no further turn now.
func (s *Session) Takes() error {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	switch {
	case s.row.Closed:
		return Closed(s.row)
	case len(s.turns) >= maxTurns:
		return fault.New(fault.Busy, "%d turns of the session wait already", len(s.turns)-1).
			WithHint("wait for the end of one, or cancel one; each is a run")
	}
	return nil
}

// Closed is the fault of a session that takes no further turn.
func Closed(row store.Session) error {
	return fault.New(fault.Conflict, "the session is closed: %s", row.Reason).WithHint("begin a new one")
}

// Admit has a run accepted as the next turn, and puts it behind the turns before it. One turn
// after the other is accepted, and none that Takes refuses.
func (s *Session) Admit(accept func() (id string, at time.Time, err error)) error {
	s.admitting.Lock()
	defer s.admitting.Unlock()
	if err := s.Takes(); err != nil {
		return err
	}
	turn := s.NextTurn()
	id, at, err := accept()
	if err == nil {
		s.join(id, turn, at)
	}
	return err
}

// NextTurn is the number of the next turn.
func (s *Session) NextTurn() int { return s.Row().Turns + 1 }

// Rejoin puts a turn that an earlier process accepted behind those before it.
func (s *Session) Rejoin(id string, turn int) { s.join(id, turn, s.Row().UsedAt) }

func (s *Session) join(id string, turn int, at time.Time) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.turns = append(s.turns, id)
	s.row.Turns, s.row.UsedAt = max(s.row.Turns, turn), at
	s.stopIdle()
}

// Keep notes what a turn saved, and returns what is to be stored.
func (s *Session) Keep(saved json.RawMessage) store.Session {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.row.Private = saved
	return s.row
}

// Leave takes a run away whose turn is over. After the last one the container waits for another,
// or ends because the session is closed.
func (s *Session) Leave(id string) {
	if last := s.leave(id); !last {
		return
	}
	if s.Row().Closed {
		s.drop()
		return
	}
	s.awaitIdle()
}

func (s *Session) leave(id string) (last bool) {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.turns = slices.DeleteFunc(s.turns, func(turn string) bool { return turn == id })
	s.row.UsedAt = time.Now().UTC()
	s.registry.moved.Notify()
	return len(s.turns) == 0
}
