package orchestrator

// Stats are a Service's figures of the moment.
type Stats struct {
	Running     int
	Slots       int
	Waiting     map[string]int // by unit
	FreeBytes   int64          // of the disk that holds the runs
	StoredRuns  int64
	StoredBytes int64
}
