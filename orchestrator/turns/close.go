package turns

import (
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Close stores that there is no further turn, before anything of the session ends. Then it
// cancels the turns that aren't over, and after the last one removes what the session has. The
// first reason counts.
func (s *Session) Close(reason string) {
	opts, row := s.registry.opts, s.closed(reason)
	if opts.Save(row) != nil {
		return // the next process has it open still
	}
	opts.Logger.Info("session closed", "session", row.ID, "turns", row.Turns)
	_, turns := s.now()
	for _, id := range turns {
		opts.Cancel(id, "the session was closed: "+row.Reason)
	}
	if len(turns) == 0 {
		s.drop()
	}
}

// closed notes the reason, and returns what is to be stored.
func (s *Session) closed(reason string) store.Session {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	s.close(reason)
	return s.row
}

func (s *Session) close(reason string) {
	if !s.row.Closed {
		s.row.Closed, s.row.Reason, s.row.UsedAt = true, reason, time.Now().UTC()
		s.stopIdle()
	}
}

// drop removes what a closed session without turns has. What can't be removed now is removed
// when the next process starts.
func (s *Session) drop() {
	err := s.endContainer()
	if err == nil {
		err = safefs.RemoveTree(s.registry.opts.Dir(s.ID()))
	}
	if err != nil {
		s.registry.opts.Logger.Warn("session not removed", "session", s.ID(), fault.LogAttr(err))
	}
	s.registry.Remove(s)
}
