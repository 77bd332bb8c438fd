//go:build unix

package backup

import (
	"io/fs"
	"syscall"
)

// owner returns whose a file is.
func owner(info fs.FileInfo) (uid, gid int) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid), int(stat.Gid)
	}
	return 0, 0
}
