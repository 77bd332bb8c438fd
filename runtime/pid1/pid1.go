//go:build linux

package pid1

import (
	"os"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// exitUsage is the code of a start that failed because of AOD, not of the program.
const exitUsage = 125

// Main is the whole life of the init: it starts what args say (see the package), and returns the
// exit code when nothing else is left in the container. The caller exits with it by
// syscall.Exit, and has done nothing before.
func Main(args []string) int {
	// Anywhere else, killRest would kill every process of the machine.
	if syscall.Getpid() != 1 {
		complain("must be process 1 of a container")
		return exitUsage
	}
	report := openReport(initreport.Path)
	if report < 0 {
		report = openReport(initreport.RemotePath)
	}
	if !report.begin() {
		complain("this container ran before, and runs once")
		return exitUsage
	}
	command, ok := parseCommand(args[1:])
	signals := catchSignals()
	host := dialControl(command.control)
	end := ending{code: exitUsage, startError: usageText}
	if ok {
		end = supervise(command, host, signals)
	}
	if end.startError != "" {
		complain(end.startError)
	}
	if command.end && host >= 0 {
		end.logEnd = newEndID()
	}
	left := endStreams(end.logEnd, []int{1, 2}, time.Time{}) // they come while the usage is read
	raw := compose(end, readUsage(cgroupRoot))
	report.write(raw)
	host.send(raw)
	endStreams(end.logEnd, left, time.Now().Add(dismissalTime)) // the host reads faster when it has the report
	host.awaitDismissal()
	host.close()
	return end.code
}

// supervise runs the program to its end, and the end of everything beside it.
func supervise(command command, host control, signals <-chan os.Signal) ending {
	relay := newRelay()
	prepare(command.watch)
	if command.park {
		if failed := park(&command, host, signals); failed != nil {
			return *failed
		}
	}
	pid, stdin, watcher, failed := start(command)
	if failed != nil {
		return *failed
	}
	go forward(signals, pid)
	if command.leash {
		go leash(host, pid)
	}
	if relay != nil {
		go relay.serve()
	}
	end := wait(pid)
	end.terminated, end.watcher = terminated.Load(), watcher
	end.processesLeft, end.stdinTaken = killRest(), bytesTaken(stdin)
	return end
}

// complain writes one line to stderr. It ignores errors: stderr may be closed.
func complain(text string) { _, _ = syscall.Write(2, []byte("aod-init: "+text+"\n")) }
