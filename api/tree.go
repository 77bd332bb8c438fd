package api

import "time"

// Tree is a run with all that were asked for below it, as a list would show each of them: without what it was given
// and gave.
type Tree struct {
	ID         string     `json:"id"`
	Unit       string     `json:"unit"`
	Kind       string     `json:"kind,omitempty"`
	Step       string     `json:"step,omitempty"` // of the flow that asked for it, by its address
	State      State      `json:"state"`
	Status     Status     `json:"status"` // of the state
	Outcome    Outcome    `json:"outcome"`
	ErrorKind  string     `json:"error_kind,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at"`  // of the last attempt's program; nil: it hasn't started
	FinishedAt *time.Time `json:"finished_at"` // nil while it goes on
	// what it asked models for itself; nil: nothing that was charged
	Models *ModelTotal `json:"models,omitempty"`
	Runs   int         `json:"runs"` // in this tree, with this one
	// what all of them asked models for; nil: nothing that was charged
	Total *ModelTotal `json:"total,omitempty"`
	Calls []Tree      `json:"calls,omitempty"` // in the order in which they were made
	// how many runs of the whole tree are left out, the last ones; 0 below the run that was asked for
	Omitted int64 `json:"omitted,omitempty"`
}
