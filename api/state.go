package api

import (
	"encoding/json"
	"time"
)

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

// Outcome says why a run ended as it did; it is empty, and null in JSON, until it has.
type Outcome string

// MarshalJSON writes a run's missing outcome as null.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}

// The outcomes.
const (
	Success           Outcome = "success"            // exit 0 and a result that keeps the contract
	CapsuleError      Outcome = "capsule_error"      // the program exited with another code
	OutOfMemory       Outcome = "out_of_memory"      // killed at its memory limit
	LimitExceeded     Outcome = "limit_exceeded"     // another limit: processes, output, disk
	ContractViolation Outcome = "contract_violation" // exit 0, but no valid result
	TimedOut          Outcome = "timeout"            // its time was up
	WasCancelled      Outcome = "cancelled"          // somebody didn't want it any more
	RemoteError       Outcome = "remote_error"       // an agent elsewhere said that it failed, or refused
	StepFailed        Outcome = "step_failed"        // a node of a flow failed, and no edge leads on from that
	StartFailed       Outcome = "start_failed"       // the image's program could not be started
	InvalidInput      Outcome = "invalid_input"      // refused when it was known what takes it; its program never ran
	SystemError       Outcome = "system_error"       // AOD or the engine failed; see the fault
)
