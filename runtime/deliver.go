package runtime

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/runtime/quota"
)

// File is an output file where its user finds it.
type File struct {
	Name      string // relative to the directory it was delivered to, slash-separated
	Path      string // absolute
	SizeBytes int64
	SHA256    string // hex
}

func undelivered(err error, format string, args ...any) error {
	return fault.Wrap(fault.Unavailable, err, format, args...).
		WithHint("is the disk full, or something in the way? --out DIR names another directory")
}

// delivery moves files from one directory to another; links lead out of neither.
type delivery struct {
	from, to *os.Root
	bounded  bool // the files are in a project
}

func openDelivery(l Layout, dest string) (*delivery, error) {
	dest, err := filepath.Abs(dest)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dest, 0o755); err != nil {
		return nil, err
	}
	from, err := l.OutputRoot()
	if err != nil {
		return nil, err
	}
	to, err := os.OpenRoot(dest)
	if err != nil {
		_ = from.Close() // holds no data
		return nil, err
	}
	return &delivery{from, to, quota.Of(l.output()).Given()}, nil
}

// close closes the directories.
func (d *delivery) close() {
	_ = d.from.Close()
	_ = d.to.Close()
}

func (d *delivery) deliver(name string) (File, error) {
	if err := d.to.MkdirAll(path.Dir(name), 0o755); err != nil {
		return File{}, err
	}
	if err := d.move(name); err != nil {
		return File{}, err
	}
	return measure(d.to, name, d.to.Name())
}

// measure reads a file of ours below root and returns its size and digest, with its path
// below dir. It follows links that stay below root: the user may have made them.
func measure(root *os.Root, name, dir string) (File, error) {
	file, _, err := safefs.OpenInside(root, name)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = file.Close() }() // read only
	size, sum, err := safefs.Digest(file)
	if err != nil {
		return File{}, err
	}
	target := filepath.Join(dir, filepath.FromSlash(name))
	return File{Name: name, Path: target, SizeBytes: size, SHA256: sum}, nil
}

// move renames the file, or copies it to another file system.
func (d *delivery) move(name string) error {
	if err := makeOrdinary(d.from, name); err != nil {
		return err
	}
	if d.bounded {
		if err := releaseFile(d.from, name, false); err != nil {
			return err
		}
	}
	err := d.rename(name)
	if errors.Is(err, syscall.EXDEV) {
		return d.copy(name)
	}
	return err
}

// makeOrdinary makes a file ours, readable by everybody and without set-id bits.
func makeOrdinary(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &safefs.Irregular{What: safefs.Describe(info.Mode())}
	}
	if err := root.Lchown(name, os.Geteuid(), os.Getegid()); err != nil {
		return fmt.Errorf("owner: %w", err)
	}
	return root.Chmod(name, 0o644) // as readable as what its user makes
}

// rename moves the file between the two open directories, even if their paths have changed.
func (d *delivery) rename(name string) error {
	from, err := safefs.OpenDir(d.from, path.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // holds no data
	to, err := safefs.OpenDir(d.to, path.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }() // holds no data
	base := path.Base(name)
	return renameBetween(from, to, base)
}

// copy writes a temporary file and renames it, so that nobody sees half of the result.
func (d *delivery) copy(name string) error {
	source, _, err := safefs.OpenRegular(d.from, name)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // read only
	temp := path.Join(path.Dir(name), safefs.TempName())
	_, err = safefs.Copy(d.to, temp, source, 0o644)
	if err == nil {
		err = d.to.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, d.to.RemoveAll(temp))
	}
	return nil
}
