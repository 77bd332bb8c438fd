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
