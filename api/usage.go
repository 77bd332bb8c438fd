package api

// Timings say where the time went, in milliseconds of wall time.
type Timings struct {
	Queue   float64 `json:"queue_ms,omitempty"`  // waiting for a slot
	Build   float64 `json:"build_ms,omitempty"`  // finding or making the image
	Create  float64 `json:"create_ms,omitempty"` // of the container
	Start   float64 `json:"start_ms,omitempty"`  // until the engine says that it runs
	Run     float64 `json:"run_ms"`              // from there to its end
	Collect float64 `json:"collect_ms"`          // reading, checking and delivering the result
	Total   float64 `json:"total_ms"`
}

// Usage is what a run took, as the sandbox's init read it from the kernel.
type Usage struct {
	CPUSeconds      float64 `json:"cpu_seconds"`
	CPUPercent      float64 `json:"cpu_percent,omitempty"` // of one processor, on average while the program ran; 0: it was too short
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
	// nil where the kernel doesn't tell.
	MemoryBytes    *int64 `json:"memory_bytes,omitempty"`    // at the end
	DiskReadBytes  *int64 `json:"disk_read_bytes,omitempty"` // what the page cache had isn't read
	DiskWriteBytes *int64 `json:"disk_write_bytes,omitempty"`
}

// LogStats say how much was kept of what the capsule wrote to stdout and stderr.
type LogStats struct {
	Bytes     int64 `json:"bytes"`
	Truncated bool  `json:"truncated"`
}
