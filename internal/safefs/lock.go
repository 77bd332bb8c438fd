package safefs

import (
	"errors"
	"os"
	"time"
)

// ErrLocked says that another open file has the lock, as a rule one of a living process.
var ErrLocked = errors.New("the lock is held")

// lockPause is the time between two tries to get a lock, in AwaitLock.
const lockPause = 20 * time.Millisecond

// LockFile is a locked file.
type LockFile struct{ file *os.File }

// Close gives the lock back, and closes the file. To close it alone would leave the lock to a process that was forked
// a moment ago, until that runs its own program.
func (l *LockFile) Close() error { return errors.Join(unlock(l.file), l.file.Close()) }

// Lock opens a file for reading and writing, makes it with mode 0600 where there is none,
// and locks it with flock(2), without waiting. The lock is held until the file is closed.
// The kernel gives it back when the process dies, however it does. The error is ErrLocked
// when somebody else has the lock, else that of the opening.
func Lock(path string) (*LockFile, error) { return lock(path, os.O_CREATE) }

// LockExisting is Lock for a file that must be there. Where it isn't, the error is
// fs.ErrNotExist.
func LockExisting(path string) (*LockFile, error) { return lock(path, 0) }

// AwaitLock is Lock that tries again for as long as patience says while somebody else has
// the lock. It is for a process that starts again what was just killed: the kernel gives a
// lock back only when it has taken the dead process apart.
func AwaitLock(path string, patience time.Duration) (*LockFile, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(lockPause) {
		file, err := Lock(path)
		if !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			return file, err
		}
	}
}

// IsLocked reports whether somebody has the lock of a file. It never keeps one who looks at the same
// moment from the truth, nor a Lock of somebody else's for longer than it takes.
func IsLocked(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // with the lock
	err = flock(f, true)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	return false, err
}

func lock(path string, flag int) (*LockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err = flock(f, false); err == nil {
		return &LockFile{f}, nil
	}
	return nil, errors.Join(err, f.Close())
}
