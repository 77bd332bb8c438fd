package orchestrator

import (
	"io/fs"
	"path/filepath"
)

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

// room returns a fault where need more bytes would leave less than MinFreeDisk.
func (l *loop) room(need int64) error { return l.home.Disks.Room(need) }
