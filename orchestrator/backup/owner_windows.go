package backup

import "io/fs"

// owner knows nobody: Windows has no such numbers, and no server (see cmd/aod).
func owner(fs.FileInfo) (uid, gid int) { return 0, 0 }
