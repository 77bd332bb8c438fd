package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// Session is what a run has of the session of which it is a turn.
type Session struct {
	ID     string
	Turn   int    // from 1
	Dir    string // the session's own, absolute: it outlives the run
	Single bool   // the session ends with this turn
	// Project says that the session was given a project: it is in Dir then, and not in the run's.
	Project bool
	Saved   json.RawMessage // what the kind kept last, see Run.KeepSession; nil: nothing yet
	// Over is why there can be no further turn. The kind sets it before the run has its outcome;
	// "": there can.
	Over string
}

// SessionTerms say how the sessions of a unit live.
type SessionTerms struct {
	// Idle is how long a container may live on without a turn; 0: it has one in its turns alone.
	Idle time.Duration
	// Alone says that each run has a session of its own, and there are none of several turns.
	Alone bool
	// Resumes says that a session goes on in a new container.
	Resumes bool
}

// Conversant is a Kind with units whose runs may be turns of a session.
type Conversant interface {
	// Conversation returns how the sessions of a unit live, and whether it has any. The error is
	// a fault of one whose sessions can't be had here.
	Conversation(u *unit.Unit) (terms SessionTerms, has bool, err error)
	// EndSession ends what lives on between the turns of a session, and returns when it is gone.
	// No turn goes on. It may be called again after an error.
	EndSession(ctx context.Context, id string) error
}

// KeepSession stores what the kind needs to go on with the session, and what its program told.
// It returns when both are safe, or runtime.ErrDetach at the end of the process.
func (r *Run) KeepSession(saved any, told ...api.AgentEvent) error {
	told = r.maskedTold(told)
	raw, err := r.tellSession(saved, told)
	if err != nil {
		return err
	}
	return r.host.KeepSession(raw, told)
}

// KeepTurn has what the kind needs after the turn stored with the next transition, which is the
// turn's end: another process finds both, or neither. Nothing is told any more.
func (r *Run) KeepTurn(saved any, told ...api.AgentEvent) error {
	told = r.maskedTold(told)
	told = append(told, r.told.rest(r)...)
	raw, err := r.tellSession(saved, told)
	if err == nil {
		r.host.KeepTurn(raw, told)
	}
	return err
}

// tellSession tells the observer, and returns what is to be stored.
func (r *Run) tellSession(saved any, told []api.AgentEvent) (json.RawMessage, error) {
	raw, err := json.Marshal(saved)
	if err != nil {
		return nil, err
	}
	r.Session.Saved = raw
	for _, e := range told {
		r.Show(e)
	}
	return raw, nil
}
