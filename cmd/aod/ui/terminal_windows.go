package ui

import (
	"os"
	"time"
)

// ReaderGone waits, and sees nothing: a write to a pipe without a reader says it.
func ReaderGone(_ int, wait time.Duration) (gone bool, err error) {
	time.Sleep(wait)
	return false, nil
}

// NotifyResize does nothing: shells are of this machine, and Windows has none (see leadsRuns).
func NotifyResize(chan<- os.Signal) {}
