package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
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

// NoLeaks is a package's TestMain: it runs the tests, ends what they share, and fails where a goroutine outlives
// them all.
func NoLeaks(m *testing.M, ends ...func()) {
	code := m.Run()
	for _, end := range ends {
		end()
	}
	if code == 0 {
		if err := Leaks(); err != nil {
			fmt.Fprintln(os.Stderr, "all tests passed, but", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Leaks returns an error that names the goroutines that stay. One that ends late is none of them, so it
// has Patience, where goleak has half a second.
func Leaks(options ...goleak.Option) (err error) {
	Within(Patience, func() bool { err = goleak.Find(options...); return err == nil })
	return err
}
