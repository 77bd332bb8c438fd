//go:build unix

package testkit

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Tower makes directories of one name in one another below dir, however long their path gets, and
// returns the descriptor of the last. It is closed at the test's end.
func Tower(t testing.TB, dir, name string, floors int) (fd int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	for range floors {
		if err == nil {
			err = unix.Mkdirat(fd, name, 0o755)
		}
		next := -1
		if err == nil {
			next, err = unix.Openat(fd, name, unix.O_DIRECTORY, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		fd = next
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}
