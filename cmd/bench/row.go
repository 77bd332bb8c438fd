package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// row is one line of the table: the same work done in two ways.
type row struct {
	name      string
	ours      way
	yardstick way
	times     int           // as many pairs for each one that is asked for; 0 is 1
	each      int           // or one pair for as many that are asked for; 0 is 1
	target    string        // what the ratio shall be
	note      func() string // of where the time went, once it is measured; may be nil
	close     func() error  // may be nil
}

// way is one of the two.
type way struct {
	do     func(context.Context) error
	settle func(context.Context) error // not timed: waits until nothing of do goes on; may be nil
}

// measure times both ways in turn, and each goes first every other time.
func (r row) measure(ctx context.Context, pairs int) (string, error) {
	var ours, theirs []time.Duration
	for i := range max(pairs*max(r.times, 1)/max(r.each, 1), 1) + 1 {
		order := []*[]time.Duration{&ours, &theirs}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, into := range order {
			way := r.ours
			if into == &theirs {
				way = r.yardstick
			}
			took, err := way.time(ctx)
			if err != nil {
				return "", err
			}
			*into = append(*into, took)
		}
	}
	ours, theirs = ours[1:], theirs[1:] // the first pair warms caches
	ratio := float64(quantile(ours, 0.5)) / float64(quantile(theirs, 0.5))
	return fmt.Sprintf("| %s | %s | %s | %.3f | %s |", r.name, text(ours), text(theirs), ratio, r.target), nil
}

func (w way) time(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := w.do(ctx)
	took := time.Since(began)
	if err == nil && w.settle != nil {
		err = w.settle(ctx)
	}
	return took, err
}

func text(times []time.Duration) string {
	return fmt.Sprintf("%s (%s)", milliseconds(quantile(times, 0.5)), milliseconds(quantile(times, 0.95)))
}

// milliseconds has no more digits than mean something.
func milliseconds(d time.Duration) string {
	ms := d.Seconds() * 1000
	if ms < 10 {
		return fmt.Sprintf("%.2f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func quantile(times []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
