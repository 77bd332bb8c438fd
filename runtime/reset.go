package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/agent-on-demand/aod/internal/safefs"
)

// resetDir is a directory below a root that keeps certain directories and nothing else.
type resetDir struct {
	root, dir string
	keep      []string
}

// clear removes everything else from the directory, below that of a run. Where it or a kept one is missing or
// replaced, the error is errDirChanged.
func (r resetDir) clear(run string) error {
	root, err := os.OpenRoot(filepath.Join(run, r.root))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // holds no data
	if info, err := root.Lstat(r.dir); err != nil || !info.IsDir() {
		return errors.Join(err, errDirChanged)
	}
	kept := 0
	var gone []string
	err = safefs.EachEntry(root, r.dir, func(entry fs.DirEntry) error {
		if entry.IsDir() && slices.Contains(r.keep, entry.Name()) {
			kept++
			return nil
		}
		gone = append(gone, path.Join(r.dir, entry.Name()))
		return nil
	})
	for _, name := range gone {
		err = errors.Join(err, root.RemoveAll(name))
	}
	if err == nil && kept != len(r.keep) {
		err = errDirChanged
	}
	return err
}

var errDirChanged = errors.New("a directory isn't as it was made")
