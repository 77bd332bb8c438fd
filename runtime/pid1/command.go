//go:build linux

package pid1

import (
	"syscall"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// command is what to start.
type command struct {
	argv          []string
	env           []string // beyond our own environment
	stdin, stdout string   // files that it gets as such; "" is ours
	feed          string   // a file that grows, whose content it gets as its stdin; "" is none
	control       string   // the host's socket; "" is none
	park          bool     // the host says there when to start it
	leash         bool     // it ends with the host's connection
	watch         bool     // it is reported what the program tries to write
	find          bool     // it is looked for, and not started
	end           bool     // the host is told where its output ends
}

// usageText is for whoever wrote the container's entrypoint.
const usageText = "usage: init [-stdin FILE | -feed FILE] [-stdout FILE] [-control SOCKET | -park SOCKET | -leash " +
	"SOCKET] [-watch calls] [-find only] [-end lines] -- PROGRAM [ARGS...]"

// parseCommand reads what usageText says. Where it is not ok the control socket may be known
// nevertheless, and the host is told.
func parseCommand(args []string) (c command, ok bool) {
	for len(args) > 1 && args[0] != "--" {
		switch args[0] {
		case "-stdin":
			c.stdin = args[1]
		case "-feed":
			c.feed = args[1]
		case "-stdout":
			c.stdout = args[1]
		case "-control", "-park", "-leash":
			c.control, c.park, c.leash = args[1], args[0] == "-park", args[0] == "-leash"
		case "-watch":
			c.watch = true
		case "-find":
			c.find = true
		case "-end":
			c.end = true
		default:
			return c, false
		}
		args = args[2:]
	}
	if len(args) < 2 {
		return c, false
	}
	c.argv = args[1:]
	return c, true
}

// files returns the program's descriptors 0 to 2. Those that were opened are closed when
// it has started.
func (c command) files() (fds [3]uintptr, err error) {
	fds = [3]uintptr{0, 1, 2}
	for i, file := range []struct {
		path  string
		flags int
	}{{c.stdin, syscall.O_RDONLY}, {c.stdout, syscall.O_WRONLY}} {
		if file.path == "" {
			continue
		}
		fd, err := syscall.Open(file.path, file.flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fds, err
		}
		fds[i] = uintptr(fd)
	}
	return fds, nil
}

// close closes what files opened, except stdin: the program has its own.
func (command) close(fds [3]uintptr) {
	for _, fd := range fds[1:] {
		if fd > 2 {
			_ = syscall.Close(int(fd))
		}
	}
}

// bytesTaken returns how far the program has read in its stdin, which shares its open file
// with us. It is NotCounted for a stdin that can't seek, such as a pipe, or isn't ours.
func bytesTaken(stdin uintptr) int64 {
	if stdin <= 2 {
		return initreport.NotCounted
	}
	const current = 1 // SEEK_CUR
	n, err := syscall.Seek(int(stdin), 0, current)
	if err != nil {
		return initreport.NotCounted
	}
	return n
}
