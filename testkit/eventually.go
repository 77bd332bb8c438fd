package testkit

import (
	"testing"
	"time"
)

// Patience is far longer than anything takes that works.
const Patience = time.Minute

// Eventually waits until something holds, for as long as Patience. A test that waits longer fails, and
// says for what.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}
