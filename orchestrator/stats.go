package orchestrator

// Stats are the current figures of a Service.
type Stats struct {
	Running     int
	Slots       int
	Waiting     map[string]int // by unit
	FreeBytes   int64          // of the disk that holds the runs
	StoredRuns  int64
	StoredBytes int64
}
