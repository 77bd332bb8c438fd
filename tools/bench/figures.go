package main

import (
	"fmt"
	"slices"
	"time"
)

// series are the times of one way.
type series struct {
	name  string
	times []time.Duration
}

// quantile of no times is 0.
func (s series) quantile(q float64) time.Duration {
	if len(s.times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.times))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (s series) p50() time.Duration { return s.quantile(0.5) }

func (s series) slowest() time.Duration { return s.quantile(1) }

// milliseconds has no more digits than mean something.
func milliseconds(d time.Duration) string {
	return digits(d.Seconds() * 1000)
}

func digits(n float64) string {
	switch {
	case n < 10:
		return fmt.Sprintf("%.2f", n)
	case n < 100:
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

func ratio(d, of time.Duration) float64 { return float64(d) / float64(of) }

// mebibytes of a size in bytes.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
