package handoff

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/internal/safefs"
)

// reach is the number of names at the end of a directory's path that a capsule may be able
// to replace: io, handoff and outgoing.
const reach = 3

// openDir opens a directory that a capsule can write to. It follows no link in the part of
// the path that the capsule can replace.
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

// openOwn is openDir for a directory that only we write to. It refuses one of another owner:
// a capsule has made that, in the place of the one that its mount shows.
func openOwn(path string) (*os.Root, error) {
	root, err := openDir(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil && othersOwn(info) {
		err = errors.New("the directory has another owner")
	}
	if err != nil {
		_ = root.Close() // holds no data
		return nil, err
	}
	return root, nil
}
