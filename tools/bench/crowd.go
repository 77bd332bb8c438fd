package main

import (
	"context"
	"sync"
	"time"
)

// crowd does n jobs, so many at a time, and returns what each took and how long all did.
// A job gets the number of the worker that does it, which does no other meanwhile.
func crowd(
	ctx context.Context, n, atATime int, do func(ctx context.Context, worker int) error,
) (each series, all time.Duration, failures []error) {
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
		jobs    = make(chan struct{}, n)
	)
	for range n {
		jobs <- struct{}{}
	}
	close(jobs)
	began := time.Now()
	for worker := range atATime {
		workers.Go(func() {
			for range jobs {
				start := time.Now()
				err := do(ctx, worker)
				took := time.Since(start)
				mu.Lock()
				if err != nil {
					failures = append(failures, err)
				} else {
					each.times = append(each.times, took)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return each, time.Since(began), failures
}
