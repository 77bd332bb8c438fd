package safefs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// unblocked opens for reading without ever waiting for the other end of a FIFO.
const unblocked = os.O_RDONLY | syscall.O_NONBLOCK

// changing is what stands where one thing was seen and another one was opened.
const changing = "changing"

// Irregular says that something else stands in the place of a regular file, or of a
// directory on the way to it.
type Irregular struct {
	What     string // as of Describe, or "changing" where it was replaced while it was opened
	OnTheWay bool   // it stands in the place of a directory
}

// Error says it of a file that the caller names before it: "is a FIFO, not a regular file".
func (e *Irregular) Error() string {
	if e.OnTheWay {
		return "is " + e.What + ", not a directory"
	}
	return "is " + e.What + ", not a regular file"
}

// Changing reports whether it was replaced while it was opened.
func (e *Irregular) Changing() bool { return e.What == changing }

// OpenRegular opens a regular file that untrusted code may have put below root, for
// reading: through no link, also not between directories, and without waiting for the
// other end of a FIFO. It looks before it opens, because opening a device can do things,
// and after, because the name may have changed its meaning. The name is relative, with
// slashes and without "..". The error is an *Irregular or one of os.
func OpenRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return openSeen(root, name)
	}
	dir, err := Descend(root, name[:at])
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = dir.Close() }() // holds no data
	return openSeen(dir, name[at+1:])
}

func openSeen(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, nil, &Irregular{What: Describe(seen.Mode())}
	}
	f, err := dir.OpenFile(name, unblocked, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil && os.SameFile(seen, opened) {
		return f, opened, nil
	}
	_ = f.Close() // read only
	if err == nil {
		err = &Irregular{What: changing}
	}
	return nil, nil, err
}

// Descend opens a directory below root through no link, neither at its name nor on the
// way. Root stays open. The errors are those of OpenRegular.
func Descend(root *os.Root, name string) (*os.Root, error) {
	dir := root
	for part := range strings.SplitSeq(name, "/") {
		next, err := enter(dir, part)
		if dir != root {
			_ = dir.Close() // holds no data
		}
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// enter opens a directory that is one, and no link to one: a root follows links inside of
// it, so that what was opened has to be what was seen.
func enter(dir *os.Root, name string) (*os.Root, error) {
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, &Irregular{What: Describe(seen.Mode()), OnTheWay: true}
	}
	next, err := openDirOnly(dir, name)
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil && os.SameFile(seen, opened) {
		return next, nil
	}
	_ = next.Close() // holds no data
	if err == nil {
		err = &Irregular{What: changing, OnTheWay: true}
	}
	return nil, err
}

// openDirOnly opens a directory, perhaps through a link. With the dot nothing else is opened:
// a FIFO that took the directory's place would keep us waiting.
func openDirOnly(dir *os.Root, name string) (*os.Root, error) { return dir.OpenRoot(name + "/.") }

// OpenNamed opens a regular file that a user of ours has named, for reading. Links are
// followed, since they are the user's own. A FIFO isn't waited for. The error is an
// *Irregular, where something else stands at the end, or one of os.
func OpenNamed(path string) (*os.File, fs.FileInfo, error) {
	return onlyRegular(os.OpenFile(path, unblocked, 0))
}

// OpenInside is OpenNamed for a name below root: links are followed where they don't lead
// out of it.
func OpenInside(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return onlyRegular(root.OpenFile(name, unblocked, 0))
}

func onlyRegular(f *os.File, err error) (*os.File, fs.FileInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return f, info, nil
	}
	_ = f.Close() // read only
	if err == nil {
		err = &Irregular{What: Describe(info.Mode())}
	}
	return nil, nil, err
}

// OpenAppend opens a file to append to it. The file is made where it is missing, and so are the
// directories above it.
func OpenAppend(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}
