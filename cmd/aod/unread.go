package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

// unreadPause is the time between two looks, in milliseconds.
const unreadPause = 200

// waitUnread returns true when a pipe or socket has lost its reader, and false when done is
// closed or that can't be told.
func waitUnread(fd int, done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return false
		default:
		}
		watched := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor
		n, err := unix.Poll(watched, unreadPause)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return false
		case n > 0:
			return watched[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	}
}
