package runtime

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	takenName = "taken" // the output of a program that goes on
	copyName  = "copy"  // the copy that is being published
)

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

// publishCopy makes dest a directory of copies of the found files.
func (l Layout) publishCopy(found []Found, dest string) ([]File, error) {
	if err := checkDirectory(l.output()); err != nil {
		return nil, err
	}
	from, err := l.OutputRoot()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // read only
	temp := l.path(copyName)
	if err := errors.Join(os.RemoveAll(temp), mkdir(temp, 0o755)); err != nil {
		return nil, err
	}
	to, err := os.OpenRoot(temp)
	if err != nil {
		return nil, err
	}
	defer func() { _ = to.Close() }() // its files are closed
	files, err := measureAll(to, found, dest, func(f Found) error { return copyFound(from, to, f) })
	if err != nil {
		return nil, err
	}
	return files, os.Rename(temp, dest)
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
