//go:build linux

package pid1

import (
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// control is the connection to whoever started the container, or -1. The program never
// has it: it is closed on exec, and hide keeps the program from our descriptors.
type control int

const (
	// controlPatience is how long a host that doesn't listen, or doesn't read, holds us up.
	controlPatience = time.Second
	// dismissalTime is how long we stay for a host that has our report and doesn't let us go.
	dismissalTime = time.Second
)

// dialControl connects to a socket and says that we are here; "" isn't a socket.
func dialControl(path string) control {
	if path == "" {
		return -1
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	c := control(fd)
	patience := syscall.NsecToTimeval(int64(controlPatience))
	// It bounds connecting too, which waits for a place among those to be accepted.
	if syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &patience) != nil ||
		syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}) != nil {
		c.close()
		return -1
	}
	c.send([]byte(initreport.Ready))
	return c
}

// send gives up on a host that has gone or takes nothing: what it doesn't learn here
// stands in the report file.
func (c control) send(raw []byte) {
	if c < 0 {
		return
	}
	for deadline := time.Now().Add(controlPatience); len(raw) > 0 && time.Now().Before(deadline); {
		n, err := syscall.SendmsgN(int(c), raw, nil, nil, syscall.MSG_NOSIGNAL)
		switch {
		case err == nil:
			raw = raw[n:]
		case err != syscall.EINTR:
			return
		}
	}
}

// receive fills buf, and reports whether the host sent that much.
func (c control) receive(buf []byte) bool {
	for len(buf) > 0 {
		n, err := syscall.Read(int(c), buf)
		switch {
		case err == syscall.EINTR:
		case err != nil || n <= 0:
			return false
		default:
			buf = buf[n:]
		}
	}
	return true
}

// awaitDismissal returns when the host has closed the connection, or dismissalTime after all was
// said. The engine is busy with the end of a container: the host says when that disturbs nobody.
func (c control) awaitDismissal() {
	patience := syscall.NsecToTimeval(int64(dismissalTime))
	if c < 0 || syscall.Shutdown(int(c), syscall.SHUT_WR) != nil ||
		syscall.SetsockoptTimeval(int(c), syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience) != nil {
		return
	}
	c.receive(make([]byte, 1)) // nothing comes
}

func (c control) close() {
	if c >= 0 {
		_ = syscall.Close(int(c)) // nothing is lost that could be told
	}
}
