//go:build linux

package pid1

import (
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// newEndID returns what the last line of both streams is to say, or "" where there is nothing random.
func newEndID() string {
	fd, err := syscall.Open("/dev/urandom", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer syscall.Close(fd) //nolint:errcheck // nothing was written
	raw := make([]byte, initreport.EndIDBytes)
	if n, err := syscall.Read(fd, raw); err != nil || n < len(raw) {
		return ""
	}
	const hex = "0123456789abcdef"
	for i, b := range raw {
		raw[i] = hex[b&15]
	}
	return string(raw)
}

// endStreams ends streams with a line each, and returns those that took none before the deadline; an
// id of "" is none. Each is tried once in any case.
func endStreams(id string, streams []int, deadline time.Time) (left []int) {
	line := []byte(initreport.EndHead + id + initreport.EndTail)
	for _, fd := range streams {
		// nobody else writes any more
		if id != "" && syscall.SetNonblock(fd, true) == nil && !writeBefore(deadline, fd, line) {
			left = append(left, fd)
		}
	}
	return left
}

// writeBefore writes a line that a pipe takes whole or not at all. It returns false where the reader
// is too slow.
func writeBefore(deadline time.Time, fd int, line []byte) bool {
	pause := syscall.NsecToTimespec(int64(time.Millisecond))
	for {
		_, err := syscall.Write(fd, line)
		switch {
		case err == syscall.EINTR:
		case err != syscall.EAGAIN:
			return true // also where nobody reads: there is nothing to be told
		case !time.Now().Before(deadline):
			return false
		default:
			_ = syscall.Nanosleep(&pause, nil) // an early end is fine
		}
	}
}
