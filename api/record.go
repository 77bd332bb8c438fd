package api

import (
	"encoding/json"
	"time"
)

// Record is all that is known of a run (schemas/run.schema.json).
type Record struct {
	ID          string            `json:"id"`
	Unit        string            `json:"unit"`
	Kind        string            `json:"kind,omitempty"`         // the unit's
	Version     string            `json:"version,omitempty"`      // of the unit: a digest of its content
	Parent      string            `json:"parent,omitempty"`       // the run that asked for it
	Root        string            `json:"root,omitempty"`         // of its tree
	Step        string            `json:"step,omitempty"`         // of the flow that asked for it, by its address
	Session     string            `json:"session,omitempty"`      // of which it is a turn
	Turn        int               `json:"turn,omitempty"`         // its number there, from 1
	Context     string            `json:"context,omitempty"`      // the conversation or group that its client counts it to
	Schedule    *ScheduleRef      `json:"schedule,omitempty"`     // the occurrence that it is of; nil: of none
	RerunOf     string            `json:"rerun_of,omitempty"`     // the run that it was made after
	By          string            `json:"by,omitempty"`           // the name of the token with which it was asked for; "": it has none
	Metadata    map[string]string `json:"metadata,omitempty"`     // what its client says that it is about
	Input       json.RawMessage   `json:"input,omitempty"`        // where it is remembered
	InputMasked bool              `json:"input_masked,omitempty"` // secrets in it are hidden: it can't be given again
	State       State             `json:"state"`
	Status      Status            `json:"status,omitempty"`   // of the state; older servers don't send it
	Question    *OpenQuestion     `json:"question,omitempty"` // the oldest that it has open; nil: none
	Outcome     Outcome           `json:"outcome"`
	ExitCode    *int              `json:"exit_code"` // nil: it never started
	Output      json.RawMessage   `json:"output"`    // as the capsule wrote it; nil without success
	Files       []File            `json:"files"`
	Changes     *ChangeCounts     `json:"changes,omitempty"` // of the files of its workspace; nil: it had none to change
	Error       *RunError         `json:"error"`
	Retries     int               `json:"retries"`                  // attempts after the first
	MaxRetries  int               `json:"max_retries,omitempty"`    // how many there may be
	TimeoutMS   int64             `json:"timeout_ms,omitempty"`     // of an attempt; of a flow, of the whole; 0 in records of older versions
	Previous    State             `json:"previous_state,omitempty"` // the one that it was in before the last of its transitions
	ChangedAt   *time.Time        `json:"changed_at,omitempty"`     // the time of the last of its transitions
	Attempts    []Attempt         `json:"attempts,omitempty"`       // those before the last one
	Warnings    []string          `json:"warnings,omitempty"`
	Calls       []Call            `json:"calls,omitempty"`      // of other units, in their order; of a flow none: it has steps
	Flow        *FlowCounts       `json:"flow,omitempty"`       // of a flow
	Versions    map[string]string `json:"versions,omitempty"`   // of a flow: those of the units that its nodes name, which it stays with, by name
	Models      *ModelUsage       `json:"models,omitempty"`     // what it spent on them; nil: it asked none
	Upstreams   []UpstreamUse     `json:"upstreams,omitempty"`  // those that it asked, by name
	ToolCalls   []ToolCall        `json:"tool_calls,omitempty"` // the first of those that an MCP server answered in its session
	Egress      []EgressRow       `json:"egress,omitempty"`     // the hosts that it reached, or was refused
	Image       ImageRef          `json:"image,omitzero"`
	Container   *Container        `json:"container,omitempty"` // of the last attempt; nil: it came to none
	Timings     Timings           `json:"timings"`
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
