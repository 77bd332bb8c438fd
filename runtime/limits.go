package runtime

import "time"

// Limits bound one run. In a set of wishes zero means "not said".
type Limits struct {
	Timeout     time.Duration // wall time from the container's start
	MemoryBytes int64         // memory; no swap is given
	CPUs        float64       // cores' worth of time
	PIDs        int64         // processes and threads of the unit
	OpenFiles   int64         // descriptors per process
	TmpBytes    int64         // /tmp, which counts as memory too
	DiskBytes   int64         // everything written to /io and /workspace together
	OutputBytes int64         // all output files together
	OutputFiles int           // their number, and that of directories
	LogBytes    int64         // kept of stdout and stderr together; the rest is dropped
	ResultBytes int64         // output.json
}

// DefaultLimits are in force where neither the unit nor the operator says otherwise.
func DefaultLimits() Limits {
	return Limits{
		Timeout:     time.Minute,
		MemoryBytes: 512 << 20,
		CPUs:        1,
		PIDs:        128,
		OpenFiles:   1024,
		TmpBytes:    64 << 20,
		DiskBytes:   2 << 30,
		OutputBytes: 1 << 30,
		OutputFiles: 1000,
		LogBytes:    1 << 20,
		ResultBytes: 1 << 20,
	}
}

// Or returns the limits with everything that isn't said taken from the fallback. The
// disk has room for twice the output that is said: it is often written and then packed.
func (l Limits) Or(fallback Limits) Limits {
	return Limits{
		Timeout:     or(l.Timeout, fallback.Timeout),
		MemoryBytes: or(l.MemoryBytes, fallback.MemoryBytes),
		CPUs:        or(l.CPUs, fallback.CPUs),
		PIDs:        or(l.PIDs, fallback.PIDs),
		OpenFiles:   or(l.OpenFiles, fallback.OpenFiles),
		TmpBytes:    or(l.TmpBytes, fallback.TmpBytes),
		DiskBytes:   or(l.DiskBytes, max(fallback.DiskBytes, 2*l.OutputBytes)),
		OutputBytes: or(l.OutputBytes, fallback.OutputBytes),
		OutputFiles: or(l.OutputFiles, fallback.OutputFiles),
		LogBytes:    or(l.LogBytes, fallback.LogBytes),
		ResultBytes: or(l.ResultBytes, fallback.ResultBytes),
	}
}

func or[T comparable](said, fallback T) T {
	var unsaid T
	if said == unsaid {
		return fallback
	}
	return said
}
