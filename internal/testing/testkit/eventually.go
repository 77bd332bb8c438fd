package testkit

import (
	"testing"
	"time"
)

// Patience is far longer than anything takes that works, on however busy a machine.
const Patience = 3 * time.Minute

// Eventually waits until something holds, for as long as Patience. A test that waits longer fails, and
// says for what.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Within(Patience, holds) {
		t.Fatalf("not within %v: %s", Patience, what)
	}
}

const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// Within waits until something holds, but no longer than a time, and reports whether it does. It looks
// less often the longer it waits, for the machine has more to do than to be looked at: what took a
// second may be seen an eighth of a second later.
func Within(patience time.Duration, holds func() bool) bool {
	for start := time.Now(); !holds(); {
		waited := time.Since(start)
		if waited > patience {
			return false
		}
		time.Sleep(min(max(waited/8, shortestPause), longestPause))
	}
	return true
}
