package testkit

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// NoLeaks is a package's TestMain: it runs the tests, and fails where a goroutine outlives them all.
func NoLeaks(m *testing.M) {
	code := m.Run()
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
