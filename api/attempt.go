package api

import "time"

// Attempt is a try that failed and was made again.
type Attempt struct {
	Number     int       `json:"number"` // from 1
	Outcome    Outcome   `json:"outcome"`
	ExitCode   *int      `json:"exit_code"`
	Error      *RunError `json:"error"`
	Usage      *Usage    `json:"usage,omitempty"`
	FinishedAt time.Time `json:"finished_at"`
}
