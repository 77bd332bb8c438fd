package api

import "time"

// PoolStats tell of the sandboxes that wait for runs (schemas/pool.schema.json).
type PoolStats struct {
	Size        int        `json:"size"` // how many may wait, all together
	Waiting     int        `json:"waiting"`
	MemoryBytes int64      `json:"memory_bytes"` // that they may take, all together
	UsedBytes   int64      `json:"used_bytes"`   // that they take, as far as earlier runs tell
	Units       []PoolUnit `json:"units"`        // sorted by name
}

// PoolUnit tells of one unit that was called, or wants sandboxes to wait whoever calls it.
type PoolUnit struct {
	Unit     string `json:"unit"`
	Wanted   int    `json:"wanted"` // how many should wait now
	Fixed    int    `json:"fixed"`  // how many of these it asks for
	Starting int    `json:"starting"`
	Hits     int64  `json:"hits"`     // runs that got one
	Misses   int64  `json:"misses"`   // runs that started a container of their own
	Refills  int64  `json:"refills"`  // sandboxes that were started
	Failures int64  `json:"failures"` // to start one
	// Discarded are those whose programs computed or wrote while they waited.
	Discarded int64         `json:"discarded"`
	Waiting   []PoolSandbox `json:"waiting"` // the oldest first
}

// PoolSandbox is one sandbox that waits.
type PoolSandbox struct {
	ID        string    `json:"id"`        // its label aod.run
	Container string    `json:"container"` // the engine's id
	Loaded    bool      `json:"loaded"`    // its program is loaded and asks for a run; else it isn't started
	Since     time.Time `json:"since"`
}
