package api

import (
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

// Unit is what a Service tells of a unit.
type Unit struct {
	Name         string          `json:"name"`
	Kind         string          `json:"kind"`
	Version      string          `json:"version"` // digest of its content
	Description  string          `json:"description"`
	Source       string          `json:"source"`           // "directory" or "upload"
	Origin       string          `json:"origin,omitempty"` // the directory
	Image        string          `json:"image,omitempty"`
	Concurrency  int             `json:"concurrency"` // runs at once; 0: as many as the server allows
	Access       string          `json:"access"`      // "read-only" or "read-write"
	Since        *time.Time      `json:"since"`
	Problem      *UnitProblem    `json:"problem"`
	Policy       *UnitPolicy     `json:"policy,omitempty"` // nil where there is no version that could be run
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// UnitProblem says what is wrong with a unit's newest state, which isn't served.
type UnitProblem struct {
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}
