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
