package api

import "time"

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
