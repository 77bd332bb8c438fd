//go:build unix

package safefs

import (
	"errors"
	"os"
	"syscall"
)

// flock locks a file, with others that share it or alone, or returns ErrLocked.
func flock(f *os.File, shared bool) error {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// unlock gives the lock of a file back, whoever else has the file open.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// directoryOnly has nothing opened but a directory.
const directoryOnly = syscall.O_DIRECTORY
