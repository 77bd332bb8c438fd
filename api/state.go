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

// Transition is the entering of a state.
type Transition struct {
	State   State     `json:"state"`
	At      time.Time `json:"at"`
	Reason  string    `json:"reason,omitempty"`
	Attempt int       `json:"attempt,omitempty"` // the number of a try after the first
}
