package api

import "time"

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
	Status     Status            `json:"status,omitempty"` // as in a Record
	Outcome    Outcome           `json:"outcome"`
	ExitCode   *int              `json:"exit_code"`
	Error      *RunError         `json:"error"`
	Retries    int               `json:"retries"`
	Timings    Timings           `json:"timings"`
	CreatedAt  time.Time         `json:"created_at"`
	StartedAt  *time.Time        `json:"started_at"`
	FinishedAt *time.Time        `json:"finished_at"`
}
