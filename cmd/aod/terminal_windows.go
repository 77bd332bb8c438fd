package main

import (
	"os"
	"time"
)

// readerGone waits, and sees nothing: a write to a pipe without a reader says it.
func readerGone(_ int, wait time.Duration) (gone bool, err error) {
	time.Sleep(wait)
	return false, nil
}

// notifyResize does nothing: shells are of this machine, and Windows has none (see leadsRuns).
func notifyResize(chan<- os.Signal) {}
