package runtime

import (
	"cmp"
	"time"
)

// Limits bound one run. Zero means "not set" where limits are asked for: see Or.
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

// DefaultLimits apply where neither the unit nor the operator sets a limit.
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

// Or returns the limits, with those of the fallback where they aren't set. A disk
// limit that isn't set becomes at least twice the output limit that is: output is often
// written and then packed.
func (l Limits) Or(fallback Limits) Limits {
	return Limits{
		Timeout:     cmp.Or(l.Timeout, fallback.Timeout),
		MemoryBytes: cmp.Or(l.MemoryBytes, fallback.MemoryBytes),
		CPUs:        cmp.Or(l.CPUs, fallback.CPUs),
		PIDs:        cmp.Or(l.PIDs, fallback.PIDs),
		OpenFiles:   cmp.Or(l.OpenFiles, fallback.OpenFiles),
		TmpBytes:    cmp.Or(l.TmpBytes, fallback.TmpBytes),
		DiskBytes:   cmp.Or(l.DiskBytes, max(fallback.DiskBytes, 2*l.OutputBytes)),
		OutputBytes: cmp.Or(l.OutputBytes, fallback.OutputBytes),
		OutputFiles: cmp.Or(l.OutputFiles, fallback.OutputFiles),
		LogBytes:    cmp.Or(l.LogBytes, fallback.LogBytes),
		ResultBytes: cmp.Or(l.ResultBytes, fallback.ResultBytes),
	}
}

// AtMost returns the limits, none larger than its bound. A zero bound is none.
func (l Limits) AtMost(most Limits) Limits {
	return Limits{
		Timeout:     bounded(l.Timeout, most.Timeout),
		MemoryBytes: bounded(l.MemoryBytes, most.MemoryBytes),
		CPUs:        bounded(l.CPUs, most.CPUs),
		PIDs:        bounded(l.PIDs, most.PIDs),
		OpenFiles:   bounded(l.OpenFiles, most.OpenFiles),
		TmpBytes:    bounded(l.TmpBytes, most.TmpBytes),
		DiskBytes:   bounded(l.DiskBytes, most.DiskBytes),
		OutputBytes: bounded(l.OutputBytes, most.OutputBytes),
		OutputFiles: bounded(l.OutputFiles, most.OutputFiles),
		LogBytes:    bounded(l.LogBytes, most.LogBytes),
		ResultBytes: bounded(l.ResultBytes, most.ResultBytes),
	}
}

func bounded[T cmp.Ordered](own, most T) T {
	var none T
	if most == none {
		return own
	}
	return min(own, most)
}
