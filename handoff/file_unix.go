//go:build unix

package handoff

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow has a link refused in the place of a file.
const noFollow = syscall.O_NOFOLLOW

// linkInto makes a hard link in an open directory.
func linkInto(dir *os.File, source, name string) error {
	return unix.Linkat(unix.AT_FDCWD, source, int(dir.Fd()), name, 0)
}

// othersOwn reports whether a file is another user's.
func othersOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) != os.Geteuid()
}
