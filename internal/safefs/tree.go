package safefs

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// MaxDepth is how deep a walk through directories of untrusted code goes in one go: they
// may be nested without end, and neither paths nor open files shall run out.
const MaxDepth = 128

// readDirStep is how many entries are read in one go: memory stays bounded whatever is
// there.
const readDirStep = 256

// EachEntry calls do for every entry of a directory below root, with what lstat says
// of it, until it returns an error.
func EachEntry(root *os.Root, name string, do func(fs.DirEntry) error) error {
	dir, err := OpenDir(root, name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // read only
	for {
		batch, err := dir.ReadDir(readDirStep)
		for _, entry := range batch {
			if err := do(entry); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// OpenDir opens a directory below root as a file, for its entries or as the place of an
// operation that has no path. Links that stay below root are followed.
func OpenDir(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, unblocked|directoryOnly, 0)
}

// TreeBytes returns the size of all files below a directory, and 0 for a missing directory.
func TreeBytes(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what can't be read isn't counted
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// RemoveTree deletes a path that untrusted code could write to, with everything in
// it, also where directories were closed to their owner or are nested so deep that
// os.RemoveAll would run out of open files.
func RemoveTree(path string) error {
	tame(path)
	return os.RemoveAll(path)
}

// tame opens the directories of a tree to us and brings up to its top what is nested
// deeper than MaxDepth. What goes wrong, the removal will say.
func tame(dir string) {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return
	}
	_ = os.Chmod(dir, 0o700)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }() // holds no data
	for tops := []string{"."}; len(tops) > 0; tops = tops[1:] {
		tops = append(tops, flatten(root, tops[0], 0)...)
	}
}

// flatten returns the new names of the directories that it moved up to root.
func flatten(root *os.Root, name string, depth int) (moved []string) {
	_ = EachEntry(root, name, func(entry fs.DirEntry) error {
		if !entry.IsDir() {
			return nil
		}
		child := path.Join(name, entry.Name())
		_ = root.Chmod(child, 0o700)
		if depth < MaxDepth {
			moved = append(moved, flatten(root, child, depth+1)...)
			return nil
		}
		top := rand.Text()
		if root.Rename(child, top) == nil {
			moved = append(moved, top)
		}
		return nil
	})
	return moved
}
