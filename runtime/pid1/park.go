//go:build linux

package pid1

import (
	"os"
	"os/signal"
	"syscall"
)

// abandoned is the end of a container whose host closed the connection before a start.
var abandoned = ending{code: exitUsage, abandoned: true}

// park waits for the host's start message and completes the command with it. Where none
// comes, it returns how we end: by a signal, as a program without handlers would; at once
// when the host has gone; or because the message is not valid.
func park(c *command, host control, signals <-chan os.Signal) *ending {
	if host < 0 {
		return &abandoned // it died before we began
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD) // the orphans of what "docker exec" ran
	defer signal.Stop(children)
	told := make(chan *ending, 1)
	var message startMessage
	go func() { told <- message.receive(host) }()
	for {
		select {
		case <-children:
			reapAll()
		case s := <-signals:
			if s != syscall.SIGWINCH {
				return endedBy(s.(syscall.Signal))
			}
		case failed := <-told:
			if failed == nil {
				c.complete(message)
			}
			return failed
		}
	}
}

// endedBy is our end by a signal while there is no program to pass it on to.
func endedBy(s syscall.Signal) *ending {
	return &ending{code: 128 + int(s), signal: int(s), terminated: asksToEnd(s)}
}

// reapAll reaps every process that has ended.
func reapAll() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && (err != nil || pid == 0) {
			return
		}
	}
}
