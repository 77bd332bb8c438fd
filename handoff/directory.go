package handoff

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-on-demand/aod/safefs"
)

// reach is how much of the end of a directory's path a capsule may be able to replace:
// the three of io/handoff/outgoing.
const reach = 3

// openDir opens a directory of a capsule's without following a link where the capsule
// could have put one.
func openDir(path string) (*os.Root, error) {
	above := filepath.Clean(path)
	names := make([]string, reach)
	for i := range reach {
		names[reach-1-i], above = filepath.Base(above), filepath.Dir(above)
	}
	root, err := os.OpenRoot(above)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // holds no data
	return safefs.Descend(root, strings.Join(names, "/"))
}

// openOwn is openDir for a directory that only we write to. Where its owner shows that a
// capsule has made it, it isn't the one that its mount shows.
func openOwn(path string) (*os.Root, error) {
	root, err := openDir(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
			err = errors.New("the directory has another owner")
		}
	}
	if err != nil {
		_ = root.Close() // holds no data
		return nil, err
	}
	return root, nil
}
