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

// TempPrefix begins the name of what isn't whole yet and is about to be renamed. No name
// that we give to anything else begins with it. What carries it for long belongs to a
// process that died.
const TempPrefix = ".temp-"

// TempName returns a new name for such a file or directory.
func TempName() string { return TempPrefix + rand.Text() }

// ReplaceOptions say how a file is replaced.
type ReplaceOptions struct {
	Mode fs.FileMode // of the new file, whatever the umask is

	// Synced writes the content to the disk before the file gets its name, and the name before
	// Replace returns: then a crash of the machine, too, leaves the old file or the whole new
	// one, and that one afterwards. It takes milliseconds.
	Synced bool

	// OneWriter says that nobody else writes this file at the same time and that only we
	// write to its directory. Then the temporary name is TempPrefix and the file's own, and
	// what a dead process has left there is used up by the next replacement.
	OneWriter bool
}

// Replace makes content the content of a file, whatever stands under its name before: a
// reader finds either the old file or the whole new one. A link is replaced, not followed.
// It writes a temporary file beside it and renames that. Without OneWriter any number of
// processes may do it at once, also where untrusted code can write to the directory. After
// a failure the old file is still there, and no temporary one. The errors are those of os.
func Replace(path string, content []byte, o ReplaceOptions) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // holds no data
	name := filepath.Base(path)
	temp, flag := o.temp(name)
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(o.write(file, content), file.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp) // the first error says more
		return err
	}
	if o.Synced {
		return Sync(filepath.Dir(path))
	}
	return nil
}

// temp returns the temporary name of a file, and with which flag it is opened.
func (o ReplaceOptions) temp(name string) (temp string, flag int) {
	if o.OneWriter {
		return TempPrefix + name, os.O_TRUNC
	}
	return TempName(), os.O_EXCL
}

func (o ReplaceOptions) write(file *os.File, content []byte) error {
	if _, err := file.Write(content); err != nil {
		return err
	}
	if err := file.Chmod(o.Mode); err != nil || !o.Synced {
		return err
	}
	return file.Sync()
}

// IgnoreMissing returns nil for the error of a file that isn't there, and others as they are.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Copy makes a new file below root, of a mode that doesn't depend on the umask, with all
// that in gives, and returns how many bytes that was. A name that is taken is
// fs.ErrExist. After another failure a part of the file may be there.
//
// Where in is an *os.File, or an io.LimitedReader of one, the kernel copies: with
// copy_file_range, and so by a reflink where the file system has them.
func Copy(root *os.Root, name string, in io.Reader, mode fs.FileMode) (n int64, err error) {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if n, err = io.Copy(out, in); err != nil {
		return n, err
	}
	return n, out.Chmod(mode)
}

// MkdirAll makes what is missing of a directory below root, each with the mode, whatever
// the umask is. Where something else has such a name it makes nothing of it, and whoever
// uses the directory is told. An absolute name is fs.ErrInvalid.
func MkdirAll(root *os.Root, dir string, mode fs.FileMode) error {
	if path.IsAbs(dir) {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrInvalid}
	}
	if dir == "." {
		return nil
	}
	if err := MkdirAll(root, path.Dir(dir), mode); err != nil {
		return err
	}
	err := root.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) { // and if it isn't a directory, the next step says so
		return nil
	}
	if err != nil {
		return err
	}
	return root.Chmod(dir, mode)
}
