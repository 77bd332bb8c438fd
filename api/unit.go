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
	Concurrency  int             `json:"concurrency"`        // runs at once; 0: as many as the server allows
	Access       string          `json:"access"`             // "read-only" or "read-write"
	Disabled     bool            `json:"disabled,omitempty"` // it was switched off: its runs are refused
	Since        *time.Time      `json:"since"`
	Problem      *UnitProblem    `json:"problem"`
	Policy       *UnitPolicy     `json:"policy,omitempty"` // nil where there is no version that could be run
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Status       *UnitStatus     `json:"status,omitempty"` // nil in lists
}

// UnitStatus is what goes on with a unit.
type UnitStatus struct {
	Running  int       `json:"running"`  // runs that have begun and aren't cleaned up; up to 1000 with those that wait
	Waiting  int       `json:"waiting"`  // runs that wait for their turn
	Sessions int       `json:"sessions"` // that are open
	LastRun  *LastRun  `json:"last_run"` // the newest; nil: there was none
	Next     *NextTime `json:"next"`     // that a schedule has for it; nil: none has any
}

// NextTime is when a schedule starts a run.
type NextTime struct {
	Schedule string    `json:"schedule"` // its name
	At       time.Time `json:"at"`
}

// LastRun is the newest run of a unit.
type LastRun struct {
	ID        string    `json:"id"`
	State     State     `json:"state"`
	Outcome   Outcome   `json:"outcome"`
	CreatedAt time.Time `json:"created_at"`
}

// UnitProblem says what is wrong with a unit's newest state, which isn't served.
type UnitProblem struct {
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
}
