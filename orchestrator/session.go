package orchestrator

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/pause"
	"github.com/agent-on-demand/aod/store"
)

const (
	maxOpenSessions = 1000 // of a server
	maxTurns        = 11   // of a session that aren't over: one that goes on, and ten that wait
)

// session is a conversation that isn't over. The desk's lock guards it.
type session struct {
	row    store.Session
	kind   run.Conversant
	terms  run.SessionTerms
	turns  []string // the runs that aren't over, in their order: the first one's turn it is
	live   bool     // a container may live on
	ending bool     // that is being ended
	idle   *time.Timer

	admitting sync.Mutex // one turn after the other gets its number
}

// desk has the sessions that aren't over.
type desk struct {
	mu    sync.Mutex
	known map[string]*session
	over  bool           // the process ends: nothing idle is ended any more
	rests sync.WaitGroup // of idle ones that are being ended
	moved pause.Notifier // of turns that are over, and of containers that have ended
}

func (d *desk) find(id string) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[id]
}

// add takes a session in. Of too many the error is a Busy fault, but for one that was before.
func (d *desk) add(s *session, before bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxOpenSessions && !before {
		return fault.New(fault.Busy, "%d sessions are open already", len(d.known)).
			WithHint("end some that nobody needs: `aod agent sessions` lists them, `aod agent sessions close ID` ends one")
	}
	if d.known == nil {
		d.known = map[string]*session{}
	}
	d.known[s.row.ID] = s
	return nil
}

func (d *desk) remove(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, s.row.ID)
}

// each returns the sessions as they are now.
func (d *desk) each() []*session {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]*session, 0, len(d.known))
	for _, s := range d.known {
		all = append(all, s)
	}
	return all
}

// openOf counts the sessions with a unit that aren't closed.
func (d *desk) openOf(unit string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.known {
		if s.row.Unit == unit && !s.row.Closed {
			n++
		}
	}
	return n
}

// takes returns a fault of a session that takes no further turn now.
func (d *desk) takes(s *session) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case s.row.Closed:
		return closedSession(s.row)
	case len(s.turns) >= maxTurns:
		return fault.New(fault.Busy, "%d turns of the session wait already", len(s.turns)-1).
			WithHint("wait for the end of one, or cancel one; each is a run")
	}
	return nil
}

func closedSession(row store.Session) error {
	return fault.New(fault.Conflict, "the session is closed: %s", row.Reason).WithHint("begin a new one")
}

// next is the number of a new turn.
func (d *desk) next(s *session) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.row.Turns + 1
}

// join puts a run that was accepted behind the turns before it.
func (d *desk) join(s *session, id string, turn int, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.turns = append(s.turns, id)
	s.row.Turns, s.row.UsedAt = max(s.row.Turns, turn), at
	s.stopIdle()
}

// leave takes a run away whose turn is over, and reports whether it was the last one.
func (d *desk) leave(s *session, id string) (last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.turns = slices.DeleteFunc(s.turns, func(turn string) bool { return turn == id })
	s.row.UsedAt = time.Now().UTC()
	d.moved.Notify()
	return len(s.turns) == 0
}

func (s *session) stopIdle() {
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
}

// begin reports whether a run's turn has come, and a container may live on for it where its
// session has one. Otherwise it may name another session, which is the idlest and whose
// container the caller ends first: nobody else does that.
func (d *desk) begin(s *session, id string, bound int) (now bool, idlest *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(s.turns) == 0 || s.turns[0] != id || s.ending {
		return false, nil
	}
	if s.terms.Idle == 0 || s.live {
		return true, nil
	}
	living := 0
	for _, other := range d.known {
		if !other.live {
			continue
		}
		living++
		idle := len(other.turns) == 0 && !other.ending
		if idle && (idlest == nil || other.row.UsedAt.Before(idlest.row.UsedAt)) {
			idlest = other
		}
	}
	switch {
	case living < bound:
		s.live = true
		return true, nil
	case idlest != nil:
		idlest.ending = true
		idlest.stopIdle()
	}
	return false, idlest
}

// rest reports whether the container of a session without a turn is to end now. The caller ends
// it then.
func (d *desk) rest(s *session) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(s.turns) > 0 || s.ending || !s.live {
		return false
	}
	s.ending = true
	return true
}

// rested notes that a session has no container any more.
func (d *desk) rested(s *session, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.ending, s.live = false, s.live && !gone
	d.moved.Notify()
}

// lives notes that a session may have had a container in an earlier process.
func (d *desk) lives(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.live = s.terms.Idle > 0 && s.row.Turns > 0
}

// afterIdle has do called when a session has been without a turn for its idle time.
func (d *desk) afterIdle(s *session, do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.live || len(s.turns) > 0 || s.row.Closed {
		return
	}
	s.stopIdle()
	s.idle = time.AfterFunc(max(0, time.Until(s.row.UsedAt.Add(s.terms.Idle))), func() { d.whileOpen(do) })
}

// whileOpen calls do unless the process ends, which waits for it.
func (d *desk) whileOpen(do func()) {
	d.mu.Lock()
	over := d.over
	if !over {
		d.rests.Add(1)
	}
	d.mu.Unlock()
	if !over {
		defer d.rests.Done()
		do()
	}
}

// stop has no idle session end any more, and waits for those that are ending.
func (d *desk) stop() {
	d.mu.Lock()
	d.over = true
	for _, s := range d.known {
		s.stopIdle()
	}
	d.mu.Unlock()
	d.rests.Wait()
}

// close notes the reason why there is no further turn, and returns what is to be stored. The
// first reason counts.
func (d *desk) close(s *session, reason string) store.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.row.Closed {
		s.row.Closed, s.row.Reason, s.row.UsedAt = true, reason, time.Now().UTC()
		s.stopIdle()
	}
	return s.row
}

// keep notes what a turn saved, and returns what is to be stored.
func (d *desk) keep(s *session, saved json.RawMessage) store.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.row.Private = saved
	return s.row
}

// of returns the session as it is now, and the runs of its turns that aren't over.
func (d *desk) of(s *session) (row store.Session, turns []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return s.row, slices.Clone(s.turns)
}

// show returns a session as clients see it; live is of one that isn't over.
func (d *desk) show(row store.Session) api.Session {
	shown := api.Session{
		ID: row.ID, Unit: row.Unit, Version: row.Version, State: api.SessionOpen, Reason: row.Reason, Turns: row.Turns,
		CreatedAt: row.CreatedAt, UsedAt: row.UsedAt,
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.known[row.ID]; s != nil {
		shown.Live, shown.UsedAt = s.live, s.row.UsedAt
		if len(s.turns) > 0 {
			shown.State = api.SessionBusy
		}
	}
	if row.Closed {
		shown.State = api.SessionClosed
	}
	return shown
}

// errNoSessions is the fault of a unit that is run alone.
func errNoSessions(name string) error {
	return fault.New(fault.Conflict, "%q has no sessions: each of its runs stands for itself", name).
		WithHint("only units with kind: agent and mode: interactive have sessions; run this one")
}

var errNoConversation = errors.New("the session's kind is not known")
