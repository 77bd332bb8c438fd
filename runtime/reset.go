package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"

	"github.com/agent-on-demand/aod/internal/safefs"
)

// Reset makes the layout of a run that is over as new, for another run in the same container.
// It keeps only the directories that the container has mounted. The program goes on: all work
// is done below directories that it can't replace. Where anything is unexpected there is an
// error, and the container must not serve another run.
func (l Layout) Reset(ctx context.Context) error {
	if l.remote != nil {
		return errors.New("the run's files are elsewhere")
	}
	if over := l.overDisk(ctx, math.MaxInt64); over != nil { // and opens closed directories
		return over
	}
	for _, dir := range []resetDir{
		{"io", "input", nil},
		{"io", "handoff/incoming", nil},
		{"io", "handoff/outgoing", nil},
		{"io", "handoff", []string{"incoming", "outgoing"}},
		{"io", ".", []string{"input", "handoff"}},
		{"incoming", ".", nil},
		{"outgoing", ".", nil},
		{"workspace", ".", nil},
		{".", ".", []string{"io", "aod", "incoming", "outgoing", "workspace"}},
	} {
		if err := l.clearDir(dir); err != nil {
			return fmt.Errorf("renew: %w", err)
		}
	}
	return l.resetOutput()
}

// resetDir is a directory below a root that keeps certain directories and nothing else.
type resetDir struct {
	root, dir string
	keep      []string
}

// clearDir removes everything else from the directory. Where it or a kept one is missing or
// replaced, the error is errDirChanged.
func (l Layout) clearDir(r resetDir) error {
	root, err := os.OpenRoot(l.path(r.root))
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

// resetOutput makes /io/output, which the former run's output was moved from.
func (l Layout) resetOutput() error {
	root, err := os.OpenRoot(l.path("io"))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // holds no data
	if err := root.Mkdir("output", 0o700); err != nil {
		return err
	}
	return root.Chmod("output", 0o777)
}
