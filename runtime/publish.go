package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
)

// Publish makes the directory /io/output, with the found files and nothing else in it,
// the directory dest, which must not exist, on the same file system as the run's. Every
// file is an ordinary one of ours then. Call it when the container has ended, or of what
// was Taken.
//
// All is done in place and the directory renamed at the end, so that dest is never half
// of it. Where an earlier process came as far as that, with Output set to dest, it does
// the same work again with the same answer. The error is an Unavailable fault.
func (l Layout) Publish(found []Found, dest string) ([]File, error) {
	files, err := l.publish(found, filepath.Clean(dest))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the output files can't be published").
			WithHint("is the disk full, or something in the way in the data directory?")
	}
	return files, nil
}

func (l Layout) publish(found []Found, dest string) ([]File, error) {
	if l.lives {
		return l.copyOut(found, dest)
	}
	output := filepath.Clean(l.output())
	if err := onlyDirectory(output); err != nil {
		return nil, err
	}
	if err := os.Chmod(output, 0o700); err != nil { // the program may have closed it
		return nil, err
	}
	files, err := tidy(output, found, dest)
	if err != nil || output == dest {
		return files, err
	}
	return files, os.Rename(output, dest) // it replaces nothing: dest would have to be a file
}

// tidy leaves the found files below output, and measures them for where they are going.
func tidy(output string, found []Found, dest string) ([]File, error) {
	root, err := os.OpenRoot(output)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // holds no data
	p := pruner{root: root, keep: keeping(found)}
	if err := p.dir("."); err != nil {
		return nil, err
	}
	files := make([]File, 0, len(found))
	for _, f := range found {
		if err := own(root, f.Name); err != nil {
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

// keeping returns the found files, as false, and the directories above them, as true.
func keeping(found []Found) map[string]bool {
	keep := map[string]bool{".": true}
	for _, f := range found {
		keep[f.Name] = false
		for dir := path.Dir(f.Name); !keep[dir]; dir = path.Dir(dir) {
			keep[dir] = true
		}
	}
	return keep
}

// pruner removes what isn't to be kept. It enters the directories of kept files alone,
// so that it goes no deeper than their names.
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
	return errors.Join(err, p.ownDir(name))
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

func (p pruner) ownDir(name string) error {
	if err := p.root.Lchown(name, os.Geteuid(), os.Getegid()); err != nil {
		return err
	}
	return p.root.Chmod(name, 0o755)
}
