package orchestrator

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// freeBytes returns how many bytes this process may still write to the disk of a directory.
func freeBytes(dir string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:gosec,unconvert // no disk has 2^63 bytes; the types differ by system
}

// treeBytes returns the size of all files below a directory, and 0 for a missing directory.
func treeBytes(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what can't be read isn't counted
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
