package runtime

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// device returns the number of the disk on which a file lies.
func device(stat *syscall.Stat_t) uint64 { return stat.Dev }

// changedAt returns when a file, or what is known of it, was changed last.
func changedAt(stat *syscall.Stat_t) time.Time { return time.Unix(stat.Ctim.Unix()) }

// storageAt returns what kind of file system has a file.
func storageAt(path string) storage {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return storageUnknown
	}
	switch fs.Type {
	case unix.TMPFS_MAGIC, unix.HUGETLBFS_MAGIC:
		return storageMemory
	case unix.FUSE_SUPER_MAGIC:
		return storageFUSE
	}
	return storageDisk
}

// makeFIFO makes a named pipe in a directory.
func makeFIFO(dir *os.File, name string) error { return unix.Mkfifoat(int(dir.Fd()), name, 0o600) }
