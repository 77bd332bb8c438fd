package safefs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// manyEntries is from how many entries on a whole file system is written to the disk at once,
// which is cheaper than one file after the other.
const manyEntries = 64

// SyncTree writes the files below a directory of ours to the disk, with the entries of all
// directories there and of those above it, up to top. A crash of the machine loses nothing of
// it then.
func SyncTree(dir, top string) error {
	entries, err := treeOf(dir)
	if err != nil {
		return err
	}
	for above := filepath.Dir(dir); len(above) >= len(top); above = filepath.Dir(above) {
		entries = append(entries, above)
	}
	if len(entries) > manyEntries {
		if done, err := syncFileSystem(dir); done {
			return err
		}
	}
	for _, name := range entries {
		if err := Sync(name); err != nil {
			return err
		}
	}
	return nil
}

// treeOf lists a directory and all that is below it, each directory after what it holds.
func treeOf(dir string) (entries []string, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && (entry.IsDir() || entry.Type().IsRegular()) { // a link is its directory's
			entries = append(entries, name)
		}
		return err
	})
	slices.Reverse(entries)
	return entries, err
}

// Sync writes a file, or the entries of a directory, to the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
