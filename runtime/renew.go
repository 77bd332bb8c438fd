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

	"github.com/agent-on-demand/aod/safefs"
)

// Renew makes a layout whose run is over as new, for another one in the same container:
// nothing of the former is left but what the container has mounted. The program lives, so
// that all is done below directories which it can't replace, and where anything isn't as it
// should be there is an error. Then the container must not have another run.
func (l Layout) Renew(ctx context.Context) error {
	if l.remote != nil {
		return errors.New("the run's files are elsewhere")
	}
	if over := l.overDisk(ctx, math.MaxInt64); over != nil { // and opens what is closed
		return over
	}
	for _, dir := range []renewal{
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
		if err := l.renew(dir); err != nil {
			return fmt.Errorf("renew: %w", err)
		}
	}
	return l.renewOutput()
}

// renewal is a directory below a root that is to hold certain directories and nothing else.
type renewal struct {
	root, dir string
	keep      []string
}

func (l Layout) renew(r renewal) error {
	root, err := os.OpenRoot(l.path(r.root))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // holds no data
	if info, err := root.Lstat(r.dir); err != nil || !info.IsDir() {
		return errors.Join(err, errNotAsMade)
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
		err = errNotAsMade
	}
	return err
}

var errNotAsMade = errors.New("a directory isn't as it was made")

// renewOutput makes the directory anew that was the former run's.
func (l Layout) renewOutput() error {
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
