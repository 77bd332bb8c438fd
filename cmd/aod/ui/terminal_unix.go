//go:build unix

package ui

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ReaderGone waits for a while, and returns true when the reader of a pipe or socket has gone, or
// when that can't be told: err says why then.
func ReaderGone(fd int, wait time.Duration) (gone bool, err error) {
	watched := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor is small
	n, err := unix.Poll(watched, int(wait.Milliseconds()))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return true, err
	}
	if watched[0].Revents&unix.POLLNVAL != 0 {
		return true, unix.EBADF
	}
	return n > 0 && watched[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0, nil
}

// NotifyResize has a terminal's changes of size told.
func NotifyResize(signals chan<- os.Signal) { signal.Notify(signals, syscall.SIGWINCH) }
