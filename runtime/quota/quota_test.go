package quota

import "testing"

func TestEveryInodeHasAValidProject(t *testing.T) {
	seen := map[uint32]uint64{}
	for _, inode := range []uint64{0, 2, 12, 1<<31 - 2, 1 << 31, 1<<32 - 1, 1 << 40, 1<<64 - 1} {
		id := idOf(inode)
		if id < first || id == 1<<32-1 {
			t.Errorf("inode %d: project %d", inode, id)
		}
		if other, taken := seen[id]; taken && inode < 1<<31-1 {
			t.Errorf("inodes %d and %d have project %d", other, inode, id)
		}
		seen[id] = inode
	}
}
