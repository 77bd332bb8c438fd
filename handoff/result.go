package handoff

import (
	"encoding/json"

	"github.com/agent-on-demand/aod/api/fault"
)

// Result is a called run as it stands.
type Result struct {
	ID      string
	Ended   bool
	State   string // as of the run
	Success bool
	Output  json.RawMessage // nil without success
	Files   []Output
	Error   *Failure // nil with success
	// ExitCode is that of the callee's program; nil: it never ran to an end, or it has none.
	ExitCode *int
	Action   string // the last one of a flow's walk; "" of other units
}

// Output is a file that the callee made. It lies on this host where no capsule reaches it.
// Nobody writes to it.
type Output struct {
	Name      string // relative to the callee's /io/output, slash-separated
	Path      string // absolute
	SizeBytes int64
	SHA256    string // hex
	Field     string // the field of the output that names it, dotted; may be empty
}

// Failure is why a called run didn't succeed.
type Failure struct {
	Category string          `json:"category"`
	Kind     string          `json:"kind"`
	Type     string          `json:"type,omitempty"` // the exception's, as the callee told it
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}
