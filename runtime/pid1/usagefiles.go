//go:build linux

package pid1

import (
	"syscall"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// filesLeft counts the entries of directories, whatever they are and not what is below them:
// it is to be known whether something was left, and a program may have left a million.
func filesLeft(dirs ...string) int64 {
	left := int64(0)
	for _, dir := range dirs {
		n := entries(dir, initreport.MaxFilesLeft-left)
		if n == initreport.NotCounted {
			return n
		}
		left += n
	}
	return left
}

// entries counts up to a limit. A directory that isn't there has none.
func entries(dir string, limit int64) int64 {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err == syscall.ENOENT {
		return 0
	}
	if err != nil {
		return initreport.NotCounted
	}
	defer syscall.Close(fd) //nolint:errcheck // nothing was written
	var buf [4096]byte
	found := int64(0)
	for found < limit {
		n, err := syscall.ReadDirent(fd, buf[:])
		if err != nil {
			return initreport.NotCounted
		}
		if n <= 0 {
			return found
		}
		_, names, _ := syscall.ParseDirent(buf[:n], -1, nil) // . and .. are left out
		found += int64(names)
	}
	return limit
}
