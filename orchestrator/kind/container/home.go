package container

import (
	"encoding/json"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/runtime"
)

// home is the directory that comes along from turn to turn of a session; "" where there is none.
func (x *execution) home() string {
	if x.Session == nil {
		return ""
	}
	return filepath.Join(x.Session.Dir, layout.Home)
}

// withSession returns a layout with what its session keeps.
func (x *execution) withSession(l runtime.Layout) runtime.Layout {
	l.Home, l.Kept = x.home(), x.keptProject()
	return l
}

// makeSession makes what a layout has of its session.
func (x *execution) makeSession(l runtime.Layout) error {
	if l.Home == "" {
		return nil
	}
	return runtime.HomeDir(l.Home)
}

// savedTalk reads what the turns before, or an earlier process, kept of the session.
func (x *execution) savedTalk() (talk talkState, err error) {
	if x.Session == nil || x.Session.Saved == nil {
		return talk, nil
	}
	if err := json.Unmarshal(x.Session.Saved, &talk); err != nil {
		return talk, fault.Wrap(fault.Internal, err, "what is stored of the session can't be read").
			WithHint("begin a new one")
	}
	return talk, nil
}

// agentSession is what the program of a new container takes up, from the second turn on.
func (x *execution) agentSession() (capsule.AgentSession, error) {
	if x.Session == nil {
		return capsule.AgentSession{}, nil
	}
	talk, err := x.savedTalk()
	return capsule.AgentSession{ID: talk.idOr(x.Session.ID), Resume: talk.Told > 0}, err
}

// idOr returns the program's own id of the session, or else ours.
func (t talkState) idOr(ours string) string {
	if t.Agent.Session != "" {
		return t.Agent.Session
	}
	return ours
}

// keepOwnSession keeps the id that the program told of its session; "": it told none. The next
// turn resumes.
func (x *execution) keepOwnSession(id string) error {
	if x.Session == nil {
		return nil
	}
	talk, err := x.savedTalk()
	if err != nil {
		return err
	}
	if talk.Told = x.Session.Turn; id != "" {
		talk.Agent.Session = id
	}
	return x.KeepTurn(talk)
}
