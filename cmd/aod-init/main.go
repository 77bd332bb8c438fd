//go:build linux

package main

import (
	"os"
	"syscall"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// exitUsage is the code of a start that failed because of AOD, not of the program.
const exitUsage = 125

func main() { syscall.Exit(run(os.Args)) }

func run(args []string) int {
	// Anywhere else the kill of all that is left would mean the whole machine.
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
	end := supervise(args)
	if end.startError != "" {
		complain(end.startError)
	}
	report.write(end, readUsage(cgroupRoot))
	return end.code
}

// supervise runs the program to its end, and the end of everything beside it.
func supervise(args []string) ending {
	command, ok := parseCommand(args[1:])
	if !ok {
		return ending{code: exitUsage, startError: "usage: init [-stdin FILE] [-stdout FILE] -- PROGRAM [ARGS...]"}
	}
	signals := catchSignals()
	relay := newRelay()
	prepare()
	pid, stdin, failed := start(command)
	if failed != nil {
		return *failed
	}
	go forward(signals, pid)
	if relay != nil {
		go relay.serve()
	}
	end := wait(pid)
	end.terminated = terminated.Load()
	end.processesLeft, end.stdinTaken = killRest(), taken(stdin)
	return end
}

// complain writes one line to stderr. A stderr that nobody reads is no reason to fail.
func complain(text string) { _, _ = syscall.Write(2, []byte("aod-init: "+text+"\n")) }
