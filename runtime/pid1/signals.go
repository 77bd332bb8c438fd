//go:build linux

package pid1

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	// forwarded signals go to the program's process group.
	forwarded = []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	}
	// absorbed signals would end the Go runtime when a program inside sends them.
	absorbed = []os.Signal{
		syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
		syscall.SIGSEGV, syscall.SIGSTKFLT, syscall.SIGSYS, syscall.SIGTRAP,
	}
)

// terminated says that a signal asked for the end. It is set before the program gets the
// signal.
var terminated atomic.Bool

// catchSignals catches from now on; what arrives before forward runs is kept. The
// absorbed go to a channel that nobody reads. Nothing is ignored in the kernel's sense,
// since the program would inherit that.
func catchSignals() <-chan os.Signal {
	signals := make(chan os.Signal, 2*len(forwarded))
	signal.Notify(signals, forwarded...)
	signal.Notify(make(chan os.Signal, 1), absorbed...)
	return signals
}

// asksToEnd reports whether a signal asks for the program's end; others come from a terminal.
func asksToEnd(s os.Signal) bool { return s == syscall.SIGTERM || s == syscall.SIGINT }

// forward never returns; it ends with the process.
func forward(signals <-chan os.Signal, pgid int) {
	for s := range signals {
		if asksToEnd(s) {
			terminated.Store(true)
		}
		_ = syscall.Kill(-pgid, s.(syscall.Signal)) // a group that has gone needs no signal
	}
}

// leashGrace is the time that a program has to end by itself when the host has gone.
const leashGrace = time.Second

// leash ends the program's process group when the host's connection ends. It never returns
// before; it ends with the process.
func leash(host control, pgid int) {
	var nothing [1]byte
	for host.receive(nothing[:]) {
	}
	terminated.Store(true)
	_ = syscall.Kill(-pgid, syscall.SIGTERM) // a group that has gone needs no signal
	pause := syscall.NsecToTimespec(int64(leashGrace))
	_ = syscall.Nanosleep(&pause, nil)
	_ = syscall.Kill(-pgid, syscall.SIGKILL)
}
