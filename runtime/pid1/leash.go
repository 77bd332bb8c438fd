//go:build linux

package pid1

import (
	"syscall"
	"time"
)

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
