//go:build linux

package main

import "syscall"

// command is what to start.
type command struct {
	argv          []string
	stdin, stdout string // files that it gets as such; "" is ours
}

// parseCommand reads [-stdin FILE] [-stdout FILE] -- PROGRAM [ARGS...].
func parseCommand(args []string) (c command, ok bool) {
	for len(args) > 1 && args[0] != "--" {
		switch args[0] {
		case "-stdin":
			c.stdin = args[1]
		case "-stdout":
			c.stdout = args[1]
		default:
			return command{}, false
		}
		args = args[2:]
	}
	if len(args) < 2 {
		return command{}, false
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

// close closes what files opened: the program has its own.
func (command) close(fds [3]uintptr) {
	for _, fd := range fds {
		if fd > 2 {
			_ = syscall.Close(int(fd))
		}
	}
}
