package safefs

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// flock locks a file, with others that share it or alone, or returns ErrLocked.
func flock(f *os.File, shared bool) error {
	now := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		now |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), now, 0, math.MaxUint32, math.MaxUint32, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// unlock leaves it to the closing of the file, which no other process has open.
func unlock(*os.File) error { return nil }

// directoryOnly says nothing: what was opened is looked at afterwards.
const directoryOnly = 0
