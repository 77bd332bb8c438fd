package api

import (
	"encoding/json"
	"time"
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
	Status      Status            `json:"status,omitempty"` // of the state; older servers don't send it
	Outcome     Outcome           `json:"outcome"`
	ExitCode    *int              `json:"exit_code"` // nil: it never started
	Output      json.RawMessage   `json:"output"`    // as the capsule wrote it; nil without success
	Files       []File            `json:"files"`
	Error       *RunError         `json:"error"`
	Retries     int               `json:"retries"`            // attempts after the first
	Attempts    []Attempt         `json:"attempts,omitempty"` // those before the last one
	Warnings    []string          `json:"warnings,omitempty"`
	Calls       []Call            `json:"calls,omitempty"`      // of other units, in their order; of a flow none: it has steps
	Flow        *FlowCounts       `json:"flow,omitempty"`       // of a flow
	Versions    map[string]string `json:"versions,omitempty"`   // of a flow: those of the units that its nodes name, which it stays with, by name
	Models      *ModelUsage       `json:"models,omitempty"`     // what it spent on them; nil: it asked none
	ToolCalls   []ToolCall        `json:"tool_calls,omitempty"` // the first of those that an MCP server answered in its session
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
