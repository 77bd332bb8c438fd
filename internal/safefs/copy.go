package safefs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
)

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
// uses the directory is told.
func MkdirAll(root *os.Root, dir string, mode fs.FileMode) error {
	if dir == "." {
		return nil
	}
	if err := MkdirAll(root, path.Dir(dir), mode); err != nil {
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
