package container

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// sessionState is what a run has of the session of which it is a turn, if it is one.
type sessionState struct {
	run     *run.Run
	project project
}

// home is the directory that comes along from turn to turn of a session; "" where there is none.
func (s *sessionState) home() string {
	if s.run.Session == nil {
		return ""
	}
	return filepath.Join(s.run.Session.Dir, layout.Home)
}

// keptIn returns a layout with what its session keeps.
func (s *sessionState) keptIn(l runtime.Layout) runtime.Layout {
	l.Home, l.Kept = s.home(), s.project.kept()
	return l
}

// make makes what a layout has of its session.
func (s *sessionState) make(ctx context.Context, l runtime.Layout) error {
	if l.Home == "" {
		return nil
	}
	if left := leftElsewhere(s.run, layout.Home); left != "" {
		if err := s.project.makeKept(ctx, left, l.Home); err != nil {
			return err
		}
	}
	return runtime.HomeDir(l.Home)
}

// leftElsewhere returns a directory that the turns of a session have left at another machine; "": they haven't.
func leftElsewhere(r *run.Run, name string) string {
	left := filepath.Join(r.Session.Dir, layout.Left, name)
	if _, err := os.Lstat(left); err != nil {
		return ""
	}
	return left
}

// saved reads what the turns before, or an earlier process, kept of the session.
func (s *sessionState) saved() (talk talkState, err error) {
	if s.run.Session == nil || s.run.Session.Saved == nil {
		return talk, nil
	}
	if err := json.Unmarshal(s.run.Session.Saved, &talk); err != nil {
		return talk, fault.Wrap(fault.Internal, err, "what is stored of the session can't be read").
			WithHint("begin a new one")
	}
	return talk, nil
}

// agent is what the program of a new container takes up, from the second turn on.
func (s *sessionState) agent() (capsule.AgentSession, error) {
	if s.run.Session == nil {
		return capsule.AgentSession{}, nil
	}
	talk, err := s.saved()
	return capsule.AgentSession{ID: talk.idOr(s.run.Session.ID), Resume: talk.Told > 0}, err
}

// idOr returns the program's own id of the session, or else ours.
func (t talkState) idOr(ours string) string {
	if t.Agent.Session != "" {
		return t.Agent.Session
	}
	return ours
}

// keepOwn keeps the id that the program told of its session; "": it told none. The next
// turn resumes.
func (s *sessionState) keepOwn(id string) error {
	if s.run.Session == nil {
		return nil
	}
	talk, err := s.saved()
	if err != nil {
		return err
	}
	if talk.Told = s.run.Session.Turn; id != "" {
		talk.Agent.Session = id
	}
	return s.run.KeepTurn(talk)
}
