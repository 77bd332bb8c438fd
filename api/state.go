package api

import "time"

// State is a state of the machine that every run goes through (specification "Agent
// Wrapper", State Machine Rules; lower case on our wires).
type State string

// The states. A run's record shows the last one of Completed, Failed, Timeout and
// Cancelled; its transitions show them all.
const (
	Idle      State = "idle"
	Starting  State = "starting"
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
	Timeout   State = "timeout"
	Cancelled State = "cancelled"
	Cleanup   State = "cleanup"
)

// Status is the word for where a run is that people and programs read. It is that of the
// State, but for one: an Idle run is Queued.
type Status string

// Queued is the status of a run that waits for its turn.
const Queued Status = "queued"

// Status returns the status of a run whose record has this state.
func (s State) Status() Status {
	if s == Idle {
		return Queued
	}
	return Status(s)
}

// StateOf is the inverse of State.Status. A state is its own status.
func StateOf(s Status) State {
	if s == Queued {
		return Idle
	}
	return State(s)
}

// Transition is the entering of a state.
type Transition struct {
	State   State     `json:"state"`
	At      time.Time `json:"at"`
	Reason  string    `json:"reason,omitempty"`
	Attempt int       `json:"attempt,omitempty"` // the number of a try after the first
}
