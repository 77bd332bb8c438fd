// Package quota bounds what untrusted code writes by project quotas of the kernel, where a file system keeps them: ext4
// and XFS on Linux, for a process that may set them. There the kernel refuses the first byte too many, and counts
// deleted files that are open.
//
//	New      the project of a directory: no other directory of the file system has it
//	Give     files and directories become its own, and what is made below them later
//	Limit    from now on they hold so much
//	Met      whether a write was refused
//	Take     a file that leaves belongs to no project again
//
// Nobody remembers which projects are taken: the number of a project follows from the inode of its directory, and
// its files carry it. The owner of a file may give it another project unless a seccomp profile forbids that: it does
// in sandboxes. It must not know what the directories are for.
//
// Its Go API may change with every release: see docs/stability.md.
package quota

import "errors"

// ErrUnsupported says that a file system keeps no project quotas, or that this process can't set them.
var ErrUnsupported = errors.New("no project quotas")

// first is the lowest number of a project of ours. Engines and people count from 1.
const first = 1 << 31

// Project is a part of a file system that may be bounded. The zero Project is none.
type Project struct {
	dir string // on its file system
	id  uint32
}

// idOf returns the number of the project of a directory with so many an inode. Those of ext4 have 32 bits, and no
// file system of today has used half of them; those of XFS may differ by the upper half, which New finds out.
func idOf(inode uint64) uint32 {
	const most = first - 2 // the kernel means none by the highest number
	return first + uint32((inode^inode>>31)%(most+1))
}

// Given reports whether there is a project.
func (p Project) Given() bool { return p.id >= first }
