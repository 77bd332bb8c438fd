package orchestrator

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
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
	StartFailed       Outcome = "start_failed"       // the image's program could not be started
	InvalidInput      Outcome = "invalid_input"      // refused when it was known what takes it; its program never ran
	SystemError       Outcome = "system_error"       // AOD or the engine failed; see the fault
)

// Category says whether trying again makes sense (specification "Agent Wrapper",
// ErrorCategory).
type Category string

// The categories.
const (
	CategoryTransient Category = "Transient"
	CategoryPermanent Category = "Permanent"
	CategoryAgent     Category = "AgentError"
	CategorySystem    Category = "SystemError"
)

// Record is all that is known of a run (schemas/run.schema.json).
type Record struct {
	ID          string            `json:"id"`
	Unit        string            `json:"unit"`
	Kind        string            `json:"kind,omitempty"`     // the unit's
	Version     string            `json:"version,omitempty"`  // of the unit: a digest of its content
	Parent      string            `json:"parent,omitempty"`   // the run that asked for it
	Root        string            `json:"root,omitempty"`     // of its tree
	RerunOf     string            `json:"rerun_of,omitempty"` // the run that it was made after
	Metadata    map[string]string `json:"metadata,omitempty"` // what its client says that it is about
	Input       json.RawMessage   `json:"input,omitempty"`    // where it is remembered
	State       State             `json:"state"`
	Outcome     Outcome           `json:"outcome"`
	ExitCode    *int              `json:"exit_code"` // nil: it never started
	Output      json.RawMessage   `json:"output"`    // as the capsule wrote it; nil without success
	Files       []File            `json:"files"`
	Error       *RunError         `json:"error"`
	Retries     int               `json:"retries"`            // attempts after the first
	Attempts    []Attempt         `json:"attempts,omitempty"` // those before the last one
	Warnings    []string          `json:"warnings,omitempty"`
	Calls       []Call            `json:"calls,omitempty"` // of other units, in their order
	Image       ImageRef          `json:"image,omitzero"`
	Container   *Container        `json:"container,omitempty"` // of the last attempt; nil: it came to none
	Timings     Timings           `json:"timings"`
	Usage       *Usage            `json:"usage,omitempty"` // nil where the sandbox could not tell
	Log         LogStats          `json:"log"`
	Transitions []Transition      `json:"transitions"`
	CreatedAt   time.Time         `json:"created_at"`
	StartedAt   *time.Time        `json:"started_at,omitempty"` // of the last attempt's program
	FinishedAt  *time.Time        `json:"finished_at"`          // nil while it goes on
}

// Call is a run that another one asked for, with those that it asked for in turn.
type Call struct {
	ID         string     `json:"id"`
	Unit       string     `json:"unit"`
	State      State      `json:"state"`
	Outcome    Outcome    `json:"outcome"`
	ErrorKind  string     `json:"error_kind,omitempty"`
	Files      int        `json:"files"` // how many it gave
	CreatedAt  time.Time  `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at"`
	TotalMS    float64    `json:"total_ms"`
	Calls      []Call     `json:"calls,omitempty"`
}

// callOf is what a caller's record tells of its callee.
func callOf(r Record) Call {
	call := Call{
		ID: r.ID, Unit: r.Unit, State: r.State, Outcome: r.Outcome, Files: len(r.Files),
		CreatedAt: r.CreatedAt, FinishedAt: r.FinishedAt, TotalMS: r.Timings.Total, Calls: r.Calls,
	}
	if r.Error != nil {
		call.ErrorKind = r.Error.Kind
	}
	return call
}

// sortCalls puts calls into the order in which they were made.
func sortCalls(calls []Call) {
	slices.SortFunc(calls, func(a, b Call) int { return strings.Compare(a.ID, b.ID) })
}

// Attempt is a try that failed and was made again.
type Attempt struct {
	Number     int       `json:"number"` // from 1
	Outcome    Outcome   `json:"outcome"`
	ExitCode   *int      `json:"exit_code"`
	Error      *RunError `json:"error"`
	Usage      *Usage    `json:"usage,omitempty"`
	FinishedAt time.Time `json:"finished_at"`
}

// File is an output file where it was delivered.
type File struct {
	Name      string  `json:"name"`           // relative to /io/output
	Path      string  `json:"path,omitempty"` // on this machine
	SizeBytes int64   `json:"size_bytes"`
	SHA256    string  `json:"sha256"`
	Pointer   *string `json:"pointer,omitempty"` // the field of the output that names it
}

// RunError is what went wrong in a run, for a person and for a program.
type RunError struct {
	Category Category        `json:"category"`
	Kind     string          `json:"kind"`           // an Outcome, a limit ("pids_limit") or a fault's kind
	Type     string          `json:"type,omitempty"` // the exception's, as the capsule told it
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// ImageRef is the image that the container was made of.
type ImageRef struct {
	Ref string `json:"ref,omitempty"`
	ID  string `json:"id,omitempty"`
}

// Container is the container of an attempt.
type Container struct {
	ID       string  `json:"id"`                  // the engine's
	WaitedMS float64 `json:"waited_ms,omitempty"` // how long it had waited, started, for a run; 0: it was made for this one
	Served   int     `json:"served,omitempty"`    // the number of this run among those that it served; 0: it serves one
}

// Timings say where the time went, in milliseconds of wall time.
type Timings struct {
	Queue   float64 `json:"queue_ms,omitempty"`  // waiting for a slot
	Build   float64 `json:"build_ms,omitempty"`  // finding or making the image
	Create  float64 `json:"create_ms,omitempty"` // of the container
	Start   float64 `json:"start_ms,omitempty"`  // until the engine says that it runs
	Run     float64 `json:"run_ms"`              // from there to its end
	Collect float64 `json:"collect_ms"`          // reading, checking and delivering the result
	Total   float64 `json:"total_ms"`
}

// Usage is what a run took, as the sandbox's init read it from the kernel.
type Usage struct {
	CPUSeconds      float64 `json:"cpu_seconds"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
}

// LogStats say how much was kept of what the capsule wrote to stdout and stderr.
type LogStats struct {
	Bytes     int64 `json:"bytes"`
	Truncated bool  `json:"truncated"`
}

// Transition is the entering of a state.
type Transition struct {
	State   State     `json:"state"`
	At      time.Time `json:"at"`
	Reason  string    `json:"reason,omitempty"`
	Attempt int       `json:"attempt,omitempty"` // the number of a try after the first
}

// Event is something that happened in a run while it goes on. Exactly one of the
// fields from State to Progress is set, but for Delay.
type Event struct {
	Run      string
	Unit     string
	Parent   string // the run that called it; "" for a root
	State    *Transition
	Build    *runtime.BuildEvent
	Log      *runtime.LogLine
	Attempt  *Attempt // that failed and is made again after Delay
	Delay    time.Duration
	Warning  string
	Progress *handoff.Progress

	// With the State that a run ended in:
	Outcome string // the kind of its error; "" without one
	Files   int    // how many it gave
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
