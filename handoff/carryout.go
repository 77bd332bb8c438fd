package handoff

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/capsule/contract"
)

// carryOut puts each file where the plan has it.
func carryOut(root *os.Root, p plan, files []Output) ([]placedFile, error) {
	placed := make([]placedFile, 0, len(files))
	for i, f := range files {
		if err := put(root, f.Path, p.Names[i]); err != nil {
			return nil, fmt.Errorf("place a file: %w", err)
		}
		placed = append(placed, placedFile{
			Name: f.Name, Path: path.Join(string(contract.StageIncoming), p.Names[i]),
			SizeBytes: f.SizeBytes, SHA256: f.SHA256, Field: f.Field,
		})
	}
	return placed, nil
}

// put makes a file of ours appear below root, all of it at once: as a hard link, which
// the read-only mount keeps from being written, or else as a copy.
func put(root *os.Root, source, name string) error {
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &irregular{"an output file is " + describe(info.Mode())}
	}
	dir := path.Dir(name)
	if err := mkdirAll(root, dir); err != nil {
		return err
	}
	parent, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // holds no data
	err = unix.Linkat(unix.AT_FDCWD, source, int(parent.Fd()), path.Base(name), 0)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return putCopy(root, source, name) // another file system, or one without links, or too many
}

func putCopy(root *os.Root, source, name string) error {
	in, err := os.OpenFile(source, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	if err := copyFile(in, root, partial); err != nil {
		return err
	}
	return root.Rename(partial, name)
}

// copyFile copies to a new file below root. io.Copy between two files uses
// copy_file_range, and so a reflink where the file system has them.
func copyFile(in *os.File, root *os.Root, name string) (err error) {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Chmod(0o644)
}

// mkdirAll makes what is missing of a directory below root, open to the capsule's user
// whatever the umask is.
func mkdirAll(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := mkdirAll(root, path.Dir(dir)); err != nil {
		return err
	}
	err := root.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) { // and if it is no directory, the next step says so
		return nil
	}
	if err != nil {
		return err
	}
	return root.Chmod(dir, 0o755)
}
