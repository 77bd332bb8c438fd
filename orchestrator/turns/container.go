package turns

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Await waits until the turns before a run are over, and there is room for the container of the
// session. It returns what the turn before saved. Its error is the cause that ctx ended with.
func (s *Session) Await(ctx context.Context, id string) (saved json.RawMessage, err error) {
	for {
		moved := s.registry.moved.After() // before the look, so that nothing comes between
		now, idlest := s.begin(id)
		if now {
			return s.Row().Private, nil
		}
		if idlest != nil {
			idlest.endIdle("another session needed its place")
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// begin reports whether a run's turn has come, and a container may live on for it where its
// session has one. Otherwise it may name another session, which is the idlest and whose
// container the caller ends first: nobody else does that.
func (s *Session) begin(id string) (now bool, idlest *Session) {
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(s.turns) == 0 || s.turns[0] != id || s.ending {
		return false, nil
	}
	if s.terms.Idle == 0 || s.live {
		return true, nil
	}
	living, idlest := r.living()
	switch {
	case living < r.opts.Living:
		s.live = true
		return true, nil
	case idlest != nil:
		idlest.ending = true
		idlest.stopIdle()
	}
	return false, idlest
}

// living counts the containers that may live on, and returns the session of which nobody has
// wanted one for the longest time; nil: all are busy.
func (r *Registry) living() (n int, idlest *Session) {
	for _, s := range r.known {
		if !s.live {
			continue
		}
		n++
		idle := len(s.turns) == 0 && !s.ending
		if idle && (idlest == nil || s.row.UsedAt.Before(idlest.row.UsedAt)) {
			idlest = s
		}
	}
	return n, idlest
}

// awaitIdle has the container end when the session has been without a turn for its idle time.
func (s *Session) awaitIdle() {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	if !s.live || len(s.turns) > 0 || s.row.Closed {
		return
	}
	s.stopIdle()
	left := max(0, time.Until(s.row.UsedAt.Add(s.terms.Idle)))
	s.idle = time.AfterFunc(left, func() { s.registry.whileOpen(s.rest) })
}

func (s *Session) stopIdle() {
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
}

// whileOpen calls do unless the process ends, which waits for it.
func (r *Registry) whileOpen(do func()) {
	r.mu.Lock()
	over := r.over
	if !over {
		r.rests.Add(1)
	}
	r.mu.Unlock()
	if !over {
		defer r.rests.Done()
		do()
	}
}

// rest ends the container unless a turn has come, or somebody ends it already.
func (s *Session) rest() {
	if s.startsRest() {
		s.endIdle("it was idle for " + s.terms.Idle.String())
	}
}

func (s *Session) startsRest() bool {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	if len(s.turns) > 0 || s.ending || !s.live {
		return false
	}
	s.ending = true
	return true
}

// endIdle ends the container of a session without a turn, whose ending is noted. A session that
// can't go on without it is closed with the reason.
func (s *Session) endIdle(reason string) {
	logger := s.registry.opts.Logger
	if err := s.endContainer(); err != nil {
		logger.Warn("container of a session not ended", "session", s.ID(), fault.LogAttr(err))
	}
	logger.Info("session rests", "session", s.ID())
	s.rested() // one that is left behind is removed when the next one of the session starts
	if !s.terms.Resumes {
		s.Close(reason + ", and its program can't take up a session again")
	}
}

// rested notes that the session has no container any more.
func (s *Session) rested() {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.ending, s.live = false, false
	s.registry.moved.Notify()
}

var errNoKind = errors.New("the session's kind is not known")

// endContainer is cleaning up: no caller's end breaks it off.
func (s *Session) endContainer() error {
	if s.kind == nil {
		return errNoKind
	}
	return s.kind.EndSession(context.Background(), s.ID())
}
