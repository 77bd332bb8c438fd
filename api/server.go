package api

import "time"

// Stats are the figures of a server at one moment (schemas/stats.schema.json). Counters begin
// at 0 with each start of the server; Slots, Live and Disk are what is true now.
type Stats struct {
	Since      time.Time   `json:"since"`          // the server's start
	Slots      int         `json:"slots"`          // runs that may work at once
	Busy       int         `json:"busy"`           // slots that are taken
	Queued     int         `json:"queued"`         // runs that wait for a slot
	OldestWait float64     `json:"oldest_wait_ms"` // of the run that waits longest, in milliseconds; 0 where none waits
	Units      []UnitStats `json:"units"`          // that have runs, or had one since; sorted by name
	Pool       PoolSums    `json:"pool"`
	Memory     MemoryStats `json:"memory"`
	Disk       DiskStats   `json:"disk"`
}

// UnitStats are the figures of one unit. Rate, P50 and P95 are of the runs that ended within
// the last 10 minutes, the newest 512 of them.
type UnitStats struct {
	Unit   string            `json:"unit"`
	Live   map[Status]int64  `json:"live"`            // runs that go on
	Ended  map[Outcome]int64 `json:"ended"`           // since the start
	Queued int               `json:"queued"`          // runs that wait for a slot
	Rate   float64           `json:"rate_per_minute"` // runs that ended, per minute
	// from the acceptance to the outcome, in milliseconds; 0 where none ended
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"` // likewise
	// of a run accepted now, in milliseconds: Queued over what the unit can do; 0 where that isn't known
	ExpectedWait float64 `json:"expected_wait_ms"`
}

// PoolSums are the sums of PoolStats.
type PoolSums struct {
	Size    int `json:"size"`
	Waiting int `json:"waiting"`
}

// MemoryStats tell of the memory that runs may take.
type MemoryStats struct {
	LimitBytes int64 `json:"limit_bytes"` // all together; 0 while it isn't known
	RunBytes   int64 `json:"run_bytes"`   // the sum of the limits of runs that go on
	PoolBytes  int64 `json:"pool_bytes"`  // what waiting sandboxes take, as far as earlier runs tell
}

// DiskStats tell of the disk that holds the runs.
type DiskStats struct {
	FreeBytes   int64 `json:"free_bytes"` // 0 where that isn't known
	StoredRuns  int64 `json:"stored_runs"`
	StoredBytes int64 `json:"stored_bytes"`
}

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

// RemovedRun says what went with a run (schemas/openapi.json, "RemovedRun").
type RemovedRun struct {
	ID     string   `json:"id"`
	Runs   int      `json:"runs"`    // with those that it called
	Bytes  int64    `json:"bytes"`   // that were kept of them
	HeldBy []string `json:"held_by"` // reruns, of which each has its input and files; at most 100
}

// A2AStatus says what a server offers to clients of A2A (schemas/openapi.json, "A2AStatus").
type A2AStatus struct {
	Units    []string `json:"units"`    // that are agents
	Bindings []string `json:"bindings"` // "JSONRPC", "HTTP+JSON" and "GRPC"
	Versions []string `json:"versions"` // of the protocol, newest first
	// "submitted", "working", also those that ask something, "completed", "failed", also those rejected, and "canceled"
	Tasks map[string]int `json:"tasks"`
	Push  int64          `json:"push"` // deliveries that are still to be made
}
