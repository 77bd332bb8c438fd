package api

import "time"

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
