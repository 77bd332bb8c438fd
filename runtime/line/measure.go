//go:build linux

package line

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/runtime/tunnel"
)

var (
	measured = []string{"/io", "/workspace", "/run/aod/reach"}
	// ours are written by the orchestrator.
	ours = map[string]bool{"/io/input": true, "/io/handoff/incoming": true}
)

const (
	// maxDepth is how deep the host looks, too: what is nested deeper counts as without end.
	maxDepth = 128
	endless  = 1 << 62
	portion  = 256 // entries read at a time
	block    = 512 // bytes of a stat's block, whatever the file system's is
)

// measure adds up what the program has written.
func measure() tunnel.Usage {
	var u tunnel.Usage
	for _, dir := range measured {
		addTree(&u, unix.AT_FDCWD, dir, dir, 0)
	}
	return u
}

// addTree adds what is below a directory, which has a name in another. Nothing hides behind
// its own permissions, nor behind a path longer than the kernel takes; what vanishes
// meanwhile counts the next time.
func addTree(u *tunnel.Usage, parent int, name, path string, depth int) {
	if depth > maxDepth {
		u.Entries = endless
		return
	}
	fd, err := openDir(parent, name)
	if errors.Is(err, unix.EACCES) && unix.Fchmodat(parent, name, 0o700, 0) == nil {
		fd, err = openDir(parent, name)
	}
	if err != nil {
		return
	}
	dir := os.NewFile(uintptr(fd), path)
	defer func() { _ = dir.Close() }() // read only
	for {
		names, err := dir.Readdirnames(portion)
		for _, name := range names {
			addEntry(u, fd, name, path+"/"+name, depth)
		}
		if err != nil {
			return
		}
	}
}

// openDir opens nothing else, and never waits, should something else stand there by now.
func openDir(parent int, name string) (int, error) {
	return unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

func addEntry(u *tunnel.Usage, parent int, name, path string, depth int) {
	var st unix.Stat_t
	if ours[path] || unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	u.Entries++
	u.Bytes += st.Blocks * block
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		addTree(u, parent, name, path, depth+1)
	}
}
