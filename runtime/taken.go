package runtime

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/agent-on-demand/aod/safefs"
)

const (
	takenName = "taken" // the output of a program that lives
	copyName  = "copy"  // what of it is being published
)

// Taken returns the layout of a run that is over while its program lives: /io/output is put
// out of its reach, so that nothing else comes into its place, and Publish copies, since the
// program may have the very files open. It may be called again, also by another process.
func (l Layout) Taken() (Layout, error) {
	if l.Output != "" { // an earlier process has published it
		return l, nil
	}
	taken := l
	taken.Output, taken.lives = l.path(takenName), true
	if _, err := os.Lstat(taken.Output); err == nil {
		return taken, nil
	}
	err := os.Rename(l.path("io/output"), taken.Output) // a link is moved as such
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // Collect tells of it
	}
	return taken, unwritable(err)
}

// copyOut makes dest of copies of the found files.
func (l Layout) copyOut(found []Found, dest string) ([]File, error) {
	if err := onlyDirectory(l.output()); err != nil {
		return nil, err
	}
	from, err := l.OutputRoot()
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // read only
	draft := l.path(copyName)
	if err := errors.Join(os.RemoveAll(draft), mkdir(draft, 0o755)); err != nil {
		return nil, err
	}
	to, err := os.OpenRoot(draft)
	if err != nil {
		return nil, err
	}
	defer func() { _ = to.Close() }() // its files are closed
	files := make([]File, 0, len(found))
	for _, f := range found {
		if err := copyFound(from, to, f); err != nil {
			return nil, err
		}
		file, err := measure(to, f.Name, dest)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, os.Rename(draft, dest)
}

// copyFound copies as much of a file as it had when it was found.
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
