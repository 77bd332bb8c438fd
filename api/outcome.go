package api

import "encoding/json"

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
