// Command aod-init is PID 1 of every sandbox container: see package pid1. It is a program of its
// own to be small, and aod has one for each architecture embedded.
package main

import (
	"os"
	"syscall"

	"github.com/agent-on-demand/aod/runtime/pid1"
)

func main() { syscall.Exit(pid1.Main(os.Args)) }
