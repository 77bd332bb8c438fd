package runtime

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/agent-on-demand/aod/fault"
)

// unblocked opens for reading without ever waiting for the other end of a FIFO.
const unblocked = os.O_RDONLY | syscall.O_NONBLOCK

// AddInput copies a file of the caller's to /io/input under a clean, relative,
// slash-separated name. The source may be a link, since it is the caller's own, but
// must lead to a regular file: anything else is an Input fault, like a name that
// leads out of there.
func (l Layout) AddInput(source, name string) error {
	if !filepath.IsLocal(name) {
		return fault.New(fault.Input, "an input file can't have the name %q", name)
	}
	in, err := openRegular(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only: nothing to lose
	root, err := l.InputRoot()
	if err != nil {
		return unwritable(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	if err := mkdirAll(root, path.Dir(name), 0o755); err != nil {
		return unwritable(err)
	}
	return unwritable(copyFile(in, root, name, 0o644))
}

// unwritable is the fault of a host that has no room or no permission for a run.
func unwritable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the run's directory can't be written").
		WithHint("is the disk full? --data DIR puts runs elsewhere")
}

// copyFile copies to a new file below root. io.Copy between two files uses
// copy_file_range, and so a reflink where the file system has them.
func copyFile(in *os.File, root *os.Root, name string, mode fs.FileMode) (err error) {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Chmod(mode)
}

// openRegular opens a file of the caller's without ever blocking on a FIFO.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unblocked, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Input, err, "there is no file %q", path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the file %q can't be opened", path)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return f, nil
	}
	_ = f.Close() // read only
	return nil, fault.Wrap(fault.Input, err, "%q is not a regular file", path)
}

// notRegular says what stands in the place of a regular file.
type notRegular struct{ what string }

func (e *notRegular) Error() string { return "is " + e.what + ", not a regular file" }

// tooLarge says that a file is over its limit.
type tooLarge struct{ size, limit int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("has %d bytes, the limit is %d", e.size, e.limit)
}

// readRegular reads a file that untrusted code may have put there: never through a
// link, never anything but a regular file, never more than max bytes.
func readRegular(dir, name string, maxBytes int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // read only
	f, size, err := openHostile(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > maxBytes {
		return nil, &tooLarge{max(size, int64(len(raw))), maxBytes}
	}
	return raw, nil
}

// openHostile opens a regular file that untrusted code may have put there; a
// *notRegular says what else stands there. It looks before it opens, because opening
// a device can do things, and after, because a root follows links inside of it.
func openHostile(root *os.Root, name string) (f *os.File, size int64, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &notRegular{describe(info.Mode())}
	}
	if f, err = root.OpenFile(name, unblocked, 0); err != nil {
		return nil, 0, err
	}
	opened, err := f.Stat()
	if err == nil && os.SameFile(info, opened) {
		return f, opened.Size(), nil
	}
	_ = f.Close() // read only
	if err == nil {
		err = &notRegular{"changing"}
	}
	return nil, 0, err
}

// describe names a kind of file as a person would.
func describe(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// mkdir makes a directory whose mode doesn't depend on the umask: what is inside is
// for the container's user, and the run's directory above keeps others out.
func mkdir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// mkdirAll makes what is missing of a directory below root, with mkdir's modes.
func mkdirAll(root *os.Root, dir string, mode fs.FileMode) error {
	if dir == "." {
		return nil
	}
	if err := mkdirAll(root, path.Dir(dir), mode); err != nil {
		return err
	}
	err := root.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) { // and if it is no directory, the next step says so
		return nil
	}
	if err != nil {
		return err
	}
	return root.Chmod(dir, mode)
}

// writeFile writes a file whose mode doesn't depend on the umask.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
