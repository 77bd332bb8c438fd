//go:build unix

package runtime

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func freeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	if stat.Files > 0 && stat.Ffree == 0 {
		return 0, nil
	}
	//nolint:gosec,unconvert // no disk has 2^63 bytes; the types differ by system
	return int64(stat.Bavail) * int64(stat.Bsize), nil
}

// blocks returns how many bytes of its disk a file takes.
func blocks(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * 512 // POSIX: st_blocks counts units of 512 bytes
	}
	return info.Size()
}

// renameBetween moves a file from one open directory to another, even if their paths have changed.
func renameBetween(from, to *os.File, name string) error {
	return unix.Renameat(int(from.Fd()), name, int(to.Fd()), name)
}

// makePipe makes a named pipe.
func makePipe(path string) error { return unix.Mkfifo(path, 0o600) }
