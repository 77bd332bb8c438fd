package handoff

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// irregular says what stands in the place of a regular file, or of a directory.
type irregular struct{ what string }

func (e *irregular) Error() string { return e.what }

// reach is how much of the end of a directory's path a capsule may be able to replace:
// the three of io/handoff/outgoing.
const reach = 3

// openDir opens a directory of a capsule's without following a link where the capsule
// could have put one.
func openDir(path string) (*os.Root, error) {
	path = filepath.Clean(path)
	var names []string
	for range reach {
		names = append([]string{filepath.Base(path)}, names...)
		path = filepath.Dir(path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return descend(root, names)
}

// openOwn is openDir for a directory that only we write to. Where its owner shows that a
// capsule has made it, it isn't the one that its mount shows.
func openOwn(path string) (*os.Root, error) {
	root, err := openDir(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
			err = &irregular{"the directory has another owner"}
		}
	}
	if err != nil {
		_ = root.Close() // holds no data
		return nil, err
	}
	return root, nil
}

// descend goes down directory by directory, and closes root.
func descend(root *os.Root, names []string) (*os.Root, error) {
	for _, name := range names {
		next, err := enter(root, name)
		_ = root.Close() // holds no data
		if err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}

// enter opens a directory that is one, and no link to one: a root follows links inside
// of it, so that what was opened has to be what was seen.
func enter(root *os.Root, name string) (*os.Root, error) {
	seen, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, &irregular{"but a directory on the way is " + describe(seen.Mode())}
	}
	next, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := next.Stat("."); err != nil || !os.SameFile(seen, opened) {
		_ = next.Close() // holds no data
		return nil, errors.Join(err, &irregular{"but a directory on the way is changing"})
	}
	return next, nil
}

// openBelow opens a regular file that untrusted code put there, through no link.
func openBelow(root *os.Root, name string) (f *os.File, size int64, err error) {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	dir, err := root.OpenRoot(".")
	if err != nil {
		return nil, 0, err
	}
	if dir, err = descend(dir, parts[:last]); err != nil {
		return nil, 0, err
	}
	defer func() { _ = dir.Close() }() // read only
	return openRegular(dir, parts[last])
}

// openRegular looks before it opens, because opening a device can do things, and
// afterwards, because the name may have changed its meaning.
func openRegular(dir *os.Root, name string) (f *os.File, size int64, err error) {
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !seen.Mode().IsRegular() {
		return nil, 0, &irregular{"which is " + describe(seen.Mode()) + ", not a regular file"}
	}
	if f, err = dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		return nil, 0, err
	}
	opened, err := f.Stat()
	if err == nil && os.SameFile(seen, opened) {
		return f, opened.Size(), nil
	}
	_ = f.Close() // read only
	if err == nil {
		err = &irregular{"which is changing"}
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
