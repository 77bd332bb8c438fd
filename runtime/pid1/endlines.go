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

// endStreams ends stdout and stderr with a line each; "" is none. A reader that takes nothing holds
// us up as long as one that doesn't dismiss us.
func endStreams(id string) {
	if id == "" {
		return
	}
	line := []byte(initreport.EndHead + id + initreport.EndTail)
	deadline := time.Now().Add(dismissalTime)
	for fd := 1; fd <= 2; fd++ {
		if syscall.SetNonblock(fd, true) == nil { // nobody else writes any more
			writeBefore(deadline, fd, line)
		}
	}
}

// writeBefore writes a line that a pipe takes whole or not at all.
func writeBefore(deadline time.Time, fd int, line []byte) {
	pause := syscall.NsecToTimespec(int64(time.Millisecond))
	for time.Now().Before(deadline) {
		_, err := syscall.Write(fd, line)
		if err != syscall.EAGAIN && err != syscall.EINTR {
			return
		}
		_ = syscall.Nanosleep(&pause, nil) // an early end is fine
	}
}
