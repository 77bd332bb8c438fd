package safefs

import (
	"os"
	"syscall"
)

// unblocked opens for reading without ever waiting for the other end of a FIFO.
const unblocked = os.O_RDONLY | syscall.O_NONBLOCK
