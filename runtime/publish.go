package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Publish moves the directory /io/output to dest, with the found files and nothing else in
// it. dest must not exist, and is on the same file system. Every file is an ordinary one of
// ours then. Call it when the container has ended, or after TakeOutput.
//
// It works in place and renames the directory at the end, so that dest is never half done.
// Where an earlier process came as far as that, with Output set to dest, it does the same
// work again with the same answer. The error is an Unavailable fault.
func (l Layout) Publish(found []Found, dest string) ([]File, error) {
	files, err := l.publish(found, filepath.Clean(dest))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the output files can't be published").
			WithHint("is the disk full, or something in the way in the data directory?")
	}
	return files, nil
}

func (l Layout) publish(found []Found, dest string) ([]File, error) {
	if l.programRuns {
		return l.publishCopy(found, dest)
	}
	output := filepath.Clean(l.output())
	if err := checkDirectory(output); err != nil {
		return nil, err
	}
	if err := os.Chmod(output, 0o700); err != nil { // the program may have closed it
		return nil, err
	}
	files, err := prune(output, found, dest)
	if err != nil || output == dest {
		return files, err
	}
	return files, os.Rename(output, dest) // it replaces nothing: dest would have to be a file
}

// prune removes everything but the found files below output, and returns what they are at
// dest.
func prune(output string, found []Found, dest string) ([]File, error) {
	root, err := os.OpenRoot(output)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // holds no data
	p := pruner{root: root, keep: namesToKeep(found)}
	if err := p.dir("."); err != nil {
		return nil, err
	}
	files, err := measureAll(root, found, dest, func(f Found) error { return makeOrdinary(root, f.Name) })
	if err != nil {
		return nil, err
	}
	return files, releaseFiles(root, p.keep)
}

// measureAll prepares each of the found files below root, and returns what they are at dest.
func measureAll(root *os.Root, found []Found, dest string, prepare func(Found) error) ([]File, error) {
	files := make([]File, 0, len(found))
	for _, f := range found {
		if err := prepare(f); err != nil {
			return nil, err
		}
		file, err := measure(root, f.Name, dest)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// namesToKeep returns the names of the found files, as false, and of the directories above
// them, as true.
func namesToKeep(found []Found) map[string]bool {
	keep := map[string]bool{".": true}
	for _, f := range found {
		keep[f.Name] = false
		for dir := path.Dir(f.Name); !keep[dir]; dir = path.Dir(dir) {
			keep[dir] = true
		}
	}
	return keep
}

// pruner removes the entries that aren't to be kept. It enters only the directories of kept
// files, so that it goes no deeper than their names.
type pruner struct {
	root *os.Root
	keep map[string]bool // name -> is a directory
}

func (p pruner) dir(name string) error {
	if err := p.root.Chmod(name, 0o700); err != nil {
		return err
	}
	err := safefs.EachEntry(p.root, name, func(entry fs.DirEntry) error {
		return p.entry(path.Join(name, entry.Name()), entry)
	})
	if owned := p.root.Lchown(name, os.Geteuid(), os.Getegid()); owned != nil {
		return errors.Join(err, owned)
	}
	return errors.Join(err, p.root.Chmod(name, 0o755))
}

func (p pruner) entry(name string, entry fs.DirEntry) error {
	isDir, kept := p.keep[name]
	switch {
	case !kept, isDir != entry.IsDir():
		return safefs.RemoveTree(filepath.Join(p.root.Name(), filepath.FromSlash(name)))
	case isDir:
		return p.dir(name)
	}
	return nil
}
