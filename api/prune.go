package api

import "time"

// PruneOptions say what may go.
type PruneOptions struct {
	OlderThan time.Duration // 0: of any age
	MaxBytes  int64         // go on, oldest first, until no more than this is left; 0: no bound
	Images    bool          // instead of runs: images that no unit needs
	DryRun    bool
}

// PruneReport says what went, or would go.
type PruneReport struct {
	Runs     int   `json:"runs"`
	Sessions int64 `json:"sessions,omitempty"` // closed ones, which hold nothing but their row
	Bytes    int64 `json:"bytes"`
	Images   *int  `json:"images,omitempty"` // nil: they were not asked for
	DryRun   bool  `json:"dry_run"`
}
