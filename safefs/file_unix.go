//go:build unix

package safefs

import (
	"errors"
	"os"
	"syscall"
)

// flock locks a file, or returns ErrLocked.
func flock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// directoryOnly has nothing opened but a directory.
const directoryOnly = syscall.O_DIRECTORY
