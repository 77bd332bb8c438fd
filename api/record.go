package api

import (
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Record is all that is known of a run (schemas/run.schema.json).
type Record struct {
	ID      string `json:"id"`
	Unit    string `json:"unit"`
	Kind    string `json:"kind,omitempty"`    // the unit's
	Version string `json:"version,omitempty"` // of the unit: a digest of its content
	Parent  string `json:"parent,omitempty"`  // the run that asked for it
	Root    string `json:"root,omitempty"`    // of its tree
	Step    string `json:"step,omitempty"`    // of the flow that asked for it, by its address
	Session string `json:"session,omitempty"` // of which it is a turn
	Turn    int    `json:"turn,omitempty"`    // its number there, from 1
	// the conversation or group that its client counts it to
	Context  string       `json:"context,omitempty"`
	Schedule *ScheduleRef `json:"schedule,omitempty"` // the occurrence that it is of; nil: of none
	RerunOf  string       `json:"rerun_of,omitempty"` // the run that it was made after
	// the worker that has, or had, its last attempt; "": the server itself
	Worker string `json:"worker,omitempty"`
	// the name of the token with which it, or the run that called it, was asked for; "": it has none
	By          string            `json:"by,omitempty"`
	Owner       *Owner            `json:"owner,omitempty"`        // nil: of DefaultTeam
	TraceID     string            `json:"trace_id,omitempty"`     // of OpenTelemetry; "": it is of no trace
	Metadata    map[string]string `json:"metadata,omitempty"`     // what its client says that it is about
	Input       json.RawMessage   `json:"input,omitempty"`        // where it is remembered
	InputMasked bool              `json:"input_masked,omitempty"` // secrets in it are hidden: it can't be given again
	State       State             `json:"state"`
	Status      Status            `json:"status,omitempty"`   // of the state; older servers don't send it
	Waiting     *Waiting          `json:"waiting,omitempty"`  // nil: it doesn't, or nothing is known
	Question    *OpenQuestion     `json:"question,omitempty"` // the oldest that it has open; nil: none
	Outcome     Outcome           `json:"outcome"`
	ExitCode    *int              `json:"exit_code"` // nil: it never started
	Output      json.RawMessage   `json:"output"`    // as the capsule wrote it; nil without success
	Files       []File            `json:"files"`
	// of the files of its workspace; nil: it had none to change
	Changes    *ChangeCounts `json:"changes,omitempty"`
	Error      *RunError     `json:"error"`
	Retries    int           `json:"retries"`               // attempts after the first
	MaxRetries int           `json:"max_retries,omitempty"` // how many there may be
	// of an attempt; of a flow, of the whole; 0 in records of older versions
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// the one that it was in before the last of its transitions
	Previous  State      `json:"previous_state,omitempty"`
	ChangedAt *time.Time `json:"changed_at,omitempty"` // the time of the last of its transitions
	Attempts  []Attempt  `json:"attempts,omitempty"`   // those before the last one
	Warnings  []string   `json:"warnings,omitempty"`
	// of other units, in their order; of a flow none: it has steps
	Calls []Call      `json:"calls,omitempty"`
	Flow  *FlowCounts `json:"flow,omitempty"` // of a flow
	// of a flow: those of the units that its nodes name, which it stays with, by name
	Versions  map[string]string `json:"versions,omitempty"`
	Models    *ModelUsage       `json:"models,omitempty"`    // what it spent on them; nil: it asked none
	Upstreams []UpstreamUse     `json:"upstreams,omitempty"` // those that it asked, by name
	// the first of those that an MCP server answered in its session
	ToolCalls []ToolCall  `json:"tool_calls,omitempty"`
	Egress    []EgressRow `json:"egress,omitempty"` // the hosts that it reached, or was refused
	Image     ImageRef    `json:"image,omitzero"`
	Container *Container  `json:"container,omitempty"` // of the last attempt; nil: it came to none
	Timings   Timings     `json:"timings"`
	// What a wrapped agent tells of itself.
	CostUSD      json.Number     `json:"cost_usd,omitempty"`      // in US dollars; "": it doesn't tell
	AgentUsage   json.RawMessage `json:"agent_usage,omitempty"`   // as it tells it; nil: it doesn't
	AgentSession string          `json:"agent_session,omitempty"` // the id with which it resumes; "": none
	Usage        *Usage          `json:"usage,omitempty"`         // nil where the sandbox could not tell
	Log          LogStats        `json:"log"`
	Transitions  []Transition    `json:"transitions"`
	CreatedAt    time.Time       `json:"created_at"`
	StartedAt    *time.Time      `json:"started_at,omitempty"` // of the last attempt's program
	FinishedAt   *time.Time      `json:"finished_at"`          // nil while it goes on
}

// Waiting is why a run doesn't go on.
type Waiting struct {
	Place int `json:"place,omitempty"` // in the line of its unit, from 1; 0: it isn't in line yet
	// in the queue slots, unit, memory, answer, turn or closed; session; retry; image; engine; later versions may
	// add some
	Reason  string    `json:"reason"`
	Message string    `json:"message"` // the same for people
	Since   time.Time `json:"since"`
}

// ImageRef is the image that the container was made of.
type ImageRef struct {
	Ref string `json:"ref,omitempty"`
	ID  string `json:"id,omitempty"`
}

// Container is the container of an attempt.
type Container struct {
	ID string `json:"id"` // the engine's
	// how long it had waited, started, for a run; 0: it was made for this one
	WaitedMS float64 `json:"waited_ms,omitempty"`
	Served   int     `json:"served,omitempty"` // the number of this run among those that it served; 0: it serves one
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

// Call is a run that another one asked for, with those that it asked for in turn.
type Call struct {
	ID         string     `json:"id"`
	Unit       string     `json:"unit"`
	Step       string     `json:"step,omitempty"` // of the flow that asked for it, by its address
	State      State      `json:"state"`
	Outcome    Outcome    `json:"outcome"`
	ErrorKind  string     `json:"error_kind,omitempty"`
	Files      int        `json:"files"` // how many it gave
	CreatedAt  time.Time  `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at"`
	TotalMS    float64    `json:"total_ms"`
	Calls      []Call     `json:"calls,omitempty"`
}

// File is an output file where it was delivered.
type File struct {
	Name      string  `json:"name"`           // relative to /io/output
	Path      string  `json:"path,omitempty"` // on this machine
	SizeBytes int64   `json:"size_bytes"`
	SHA256    string  `json:"sha256"`
	Pointer   *string `json:"pointer,omitempty"` // the field of the output that names it
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
	CPUSeconds float64 `json:"cpu_seconds"`
	// of one processor, on average while the program ran; 0: it was too short
	CPUPercent      float64 `json:"cpu_percent,omitempty"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
	// nil where the kernel doesn't tell.
	MemoryBytes    *int64 `json:"memory_bytes,omitempty"`    // at the end
	DiskReadBytes  *int64 `json:"disk_read_bytes,omitempty"` // what the page cache had isn't read
	DiskWriteBytes *int64 `json:"disk_write_bytes,omitempty"`
}

// LogStats say how much was kept of what the capsule wrote to stdout and stderr.
type LogStats struct {
	Bytes     int64 `json:"bytes"`
	Truncated bool  `json:"truncated"`
}

// ToolCall is a call of a tool in a session with an MCP server.
type ToolCall struct {
	Tool  string  `json:"tool"`
	MS    float64 `json:"ms"`
	Error bool    `json:"error,omitempty"`
}

// LogEntry is one line that a unit wrote. Its text is the unit's own: whoever shows it
// on a terminal has to take out control characters.
type LogEntry struct {
	Line    int64     `json:"line,omitempty"` // its number in the log, from 1; older servers don't send it
	Time    time.Time `json:"time"`
	Stream  string    `json:"stream"` // "stdout" or "stderr"
	Text    string    `json:"text"`
	Attempt int       `json:"attempt"`
}

// LogFilter chooses lines of a log. Zero fields choose all that there are.
type LogFilter struct {
	Follow bool  // wait for more, until the run's end; not with Before
	Tail   int64 // of the lines that are chosen otherwise the last ones alone, so many
	After  int64 // lines with a higher number than this
	Before int64 // lines with a lower one
}

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

// RunError is what went wrong in a run, for a person and for a program.
type RunError struct {
	Category Category        `json:"category"`
	Kind     string          `json:"kind"`           // an Outcome, a limit ("pids_limit") or a fault's kind
	Type     string          `json:"type,omitempty"` // the exception's, as the capsule told it
	Step     string          `json:"step,omitempty"` // the address of a flow's node that failed
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}

// Values of RunError.Kind that are no Outcome, no limit and no kind of a fault.
const (
	KindQueueTimeout      = "queue_timeout"    // the run waited longer for a slot than it may
	KindMemoryLimit       = "memory_limit"     // killed at its memory limit
	KindStoppedOutside    = "stopped_outside"  // somebody else ended the container
	KindDiskFull          = "disk_full"        // the host's disk was full, or almost, and the run had kept its limits
	KindRemoteRefused     = "remote_refused"   // the agent elsewhere doesn't take the request
	KindRemoteBusy        = "remote_busy"      // it does, later
	KindRemoteUntrusted   = "remote_untrusted" // TLS says that it may be somebody else
	KindSecretUnavailable = "secret_unavailable"
	KindWorkerLost        = "worker_lost" // the machine that had the run is away, or doesn't know it any more
)

// Text returns the text of the answer of a run that succeeded, if it has one: the field text of its output.
func (r Record) Text() (text string, is bool) {
	var answer struct{ Text *string }
	if json.Unmarshal(r.Output, &answer) != nil || answer.Text == nil || r.Outcome != Success {
		return "", false
	}
	return *answer.Text, true
}

// FaultKind returns the kind of fault that a run without a result is for who asked for it.
// It reports false where the unit failed though it was asked well.
func (r Record) FaultKind() (fault.Kind, bool) {
	kind, isFault := fault.KindNamed(r.Error.Kind)
	switch {
	case isFault:
		return kind, true
	case r.Outcome == TimedOut:
		return fault.Deadline, true
	case r.Error.Kind == KindQueueTimeout:
		return fault.Unavailable, true
	}
	return fault.Internal, false
}

// TimeOrNil returns a time as it is shown: nil is the zero time.
func TimeOrNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
