package safefs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFileSystem writes everything of the file system that has a directory to the disk. done
// is false where that can't be done.
func syncFileSystem(dir string) (done bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	err = unix.Syncfs(int(f.Fd()))
	_ = f.Close() // a directory holds no data of ours
	return !errors.Is(err, unix.ENOSYS), err
}

// Exchange gives two files or directories each other's name, at one moment: there is none at
// which one of the names is missing, also after a loss of power. Where the system or the file
// system can't, the error is errors.ErrUnsupported.
func Exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return os.NewSyscallError("renameat2", err)
}
