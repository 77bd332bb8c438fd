package orchestrator

import (
	"encoding/json"
	"time"
)

// Submission asks a Service for one run of a unit.
type Submission struct {
	Unit    string
	Input   json.RawMessage // a JSON object; nil is {}
	Files   *Spool          // the caller's files, which the Service takes over; nil for none
	Timeout time.Duration   // 0: the unit's, or the default
	Within  time.Duration   // shortens the timeout, whatever it is, and never lengthens it; 0 does neither
	// Metadata says what the run is about, within the bounds of CheckMetadata: lists can be
	// searched by it. What the run calls inherits it.
	Metadata map[string]string
	// Key makes the submission idempotent: a second one with the same key joins the
	// run of the first. "" for none.
	Key string
	// TraceParent is the caller's W3C trace context; "" for none.
	TraceParent string
}

// Filter chooses runs of a list. Zero fields choose all.
type Filter struct {
	Unit   string
	Parent string
	States []State
	Active bool // only those that still go on
	// Metadata that the runs have, all of it.
	Metadata map[string]string
	Since    time.Time
	Until    time.Time
	Limit    int    // 1 to 1000; 0 is 50
	Cursor   string // Page.Next of the page before
}

// Page is a part of a list of runs, newest first.
type Page struct {
	Runs []Summary `json:"runs"`
	Next *string   `json:"next"` // nil: that was the last
}

// Summary is what a list tells of a run.
type Summary struct {
	ID         string            `json:"id"`
	Unit       string            `json:"unit"`
	Kind       string            `json:"kind"`
	Parent     string            `json:"parent,omitempty"`
	Root       string            `json:"root"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	State      State             `json:"state"`
	Outcome    Outcome           `json:"outcome"`
	ExitCode   *int              `json:"exit_code"`
	Error      *RunError         `json:"error"`
	Retries    int               `json:"retries"`
	Timings    Timings           `json:"timings"`
	CreatedAt  time.Time         `json:"created_at"`
	StartedAt  *time.Time        `json:"started_at"`
	FinishedAt *time.Time        `json:"finished_at"`
}

// StoredEvent is something that happened in a run, as a Service remembers it.
type StoredEvent struct {
	Seq  int64 // 1, 2, 3, … within the run
	Type EventType
	Data json.RawMessage
}

// EventType says what an event's data is.
type EventType string

// The types of events. After the event of type EventEnd there are no more.
const (
	EventState    EventType = "state"    // a Transition, with the number of the attempt
	EventWarning  EventType = "warning"  // {"message"}
	EventBuild    EventType = "build"    // {"step", "name", "state"}
	EventAttempt  EventType = "attempt"  // an attempt that failed and is made again
	EventCall     EventType = "call"     // a Call: one was made, or has ended
	EventProgress EventType = "progress" // {"percent", "step", "message"}: the unit's own word
	EventCancel   EventType = "cancel"   // {"reason"}: somebody asked for the run's end
	EventEnd      EventType = "end"      // {"state", "outcome"}
)

// LogEntry is one line that a unit wrote. Its text is the unit's own: whoever shows it
// on a terminal has to take out control characters.
type LogEntry struct {
	Time    time.Time `json:"time"`
	Stream  string    `json:"stream"` // "stdout" or "stderr"
	Text    string    `json:"text"`
	Attempt int       `json:"attempt"`
}

// UnitInfo is what a Service tells of a unit.
type UnitInfo struct {
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
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// PruneOptions say what of the finished runs may go.
type PruneOptions struct {
	OlderThan time.Duration // 0: of any age
	MaxBytes  int64         // go on, oldest first, until no more than this is left; 0: no bound
	DryRun    bool
}

// PruneReport says what went, or would go.
type PruneReport struct {
	Runs   int   `json:"runs"`
	Bytes  int64 `json:"bytes"`
	DryRun bool  `json:"dry_run"`
}

// Stats are a Service's figures of the moment.
type Stats struct {
	Running     int
	Slots       int
	Waiting     map[string]int // by unit
	FreeBytes   int64          // of the disk that holds the runs
	StoredRuns  int64
	StoredBytes int64
}
