package runtime

import (
	"errors"
	"io"
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
	p := publication{from: l, found: found, dest: filepath.Clean(dest)}
	publish := p.inPlace
	if l.programRuns {
		publish = p.byCopy
	}
	files, err := publish()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the output files can't be published").
			WithHint("is the disk full, or something in the way in the data directory?")
	}
	return files, nil
}

// publication makes a directory of the found files of a run.
type publication struct {
	from  Layout
	found []Found
	dest  string
}

// inPlace makes what else there is go, and renames the directory.
func (p publication) inPlace() ([]File, error) {
	output := filepath.Clean(p.from.output())
	if err := checkDirectory(output); err != nil {
		return nil, err
	}
	if err := os.Chmod(output, 0o700); err != nil { // the program may have closed it
		return nil, err
	}
	files, err := prune(output, p.found, p.dest)
	if err != nil || output == p.dest {
		return files, err
	}
	return files, os.Rename(output, p.dest) // it replaces nothing: dest would have to be a file
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

// byCopy leaves the files of a program that goes on.
func (p publication) byCopy() ([]File, error) {
	if err := checkDirectory(p.from.output()); err != nil {
		return nil, err
	}
	from, err := p.from.OutputRoot()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // read only
	temp := p.from.path(copyName)
	if err := errors.Join(os.RemoveAll(temp), mkdir(temp, 0o755)); err != nil {
		return nil, err
	}
	to, err := os.OpenRoot(temp)
	if err != nil {
		return nil, err
	}
	defer func() { _ = to.Close() }() // its files are closed
	files, err := measureAll(to, p.found, p.dest, func(f Found) error { return copyFound(from, to, f) })
	if err != nil {
		return nil, err
	}
	return files, os.Rename(temp, p.dest)
}

// copyFound copies a file up to the size that it had when it was found.
func copyFound(from, to *os.Root, f Found) error {
	in, _, err := safefs.OpenRegular(from, f.Name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	if err := safefs.MkdirAll(to, path.Dir(f.Name), 0o755); err != nil {
		return err
	}
	n, err := safefs.Copy(to, f.Name, io.LimitReader(in, f.SizeBytes), 0o644)
	if err == nil && n < f.SizeBytes {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// TakeOutput returns the layout of a run that is over while its program goes on. It moves
// /io/output out of the program's reach. Publish of that layout copies the files: the program
// may have them open. It may be called again, also by another process.
func (l Layout) TakeOutput() (Layout, error) {
	if l.Output != "" { // an earlier process has published the output
		return l, nil
	}
	taken := l
	taken.Output, taken.programRuns = l.path(takenName), true
	if _, err := os.Lstat(taken.Output); err == nil {
		return taken, nil
	}
	err := os.Rename(l.path("io/output"), taken.Output) // a link is moved as such
	return taken, unwritable(safefs.IgnoreMissing(err)) // Collect reports a missing one
}

// RenewOutput gives a program that goes on an empty /io/output, after TakeOutput.
func (l Layout) RenewOutput() error {
	err := l.resetOutput()
	if errors.Is(err, fs.ErrExist) { // the program was faster, or TakeOutput had nothing to take
		return nil
	}
	return unwritable(err)
}

// DropOutput removes what TakeOutput took.
func (l Layout) DropOutput() error {
	return unwritable(errors.Join(safefs.RemoveTree(l.path(takenName)), safefs.RemoveTree(l.path(copyName))))
}

const (
	takenName = "taken" // the output of a program that goes on
	copyName  = "copy"  // the copy that is being published
)

// Deliver moves the found files of /io/output below dest. It makes dest when there are files,
// and replaces files of the same names. Nothing is written outside dest, even through links
// in it. The error is an Unavailable fault; the files that were delivered before it are
// returned as well.
func (l Layout) Deliver(found []Found, dest string) ([]File, error) {
	if len(found) == 0 {
		return nil, nil
	}
	d, err := openDelivery(l, dest)
	if err != nil {
		return nil, undelivered(err, "the output directory %q can't be used", dest)
	}
	defer d.close()
	files := make([]File, 0, len(found))
	for _, f := range found {
		file, err := d.deliver(f.Name)
		if err != nil {
			return files, undelivered(err, "the output file %q can't be written to %q", f.Name, dest)
		}
		files = append(files, file)
	}
	return files, nil
}
