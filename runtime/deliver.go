package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
)

// File is an output file where its user finds it.
type File struct {
	Name      string // relative to the directory it was delivered to, slash-separated
	Path      string // absolute
	SizeBytes int64
	SHA256    string // hex
}

// Deliver moves the files from /io/output below dest, which is made when there is
// something to put there. A file that already has the name is replaced. Nothing is
// written outside dest, also where links stand in it. The error, an Unavailable
// fault, comes with the files that were delivered before it.
func (l Layout) Deliver(found []Found, dest string) ([]File, error) {
	if len(found) == 0 {
		return nil, nil
	}
	d, err := l.openDelivery(dest)
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

func undelivered(err error, format string, args ...any) error {
	return fault.Wrap(fault.Unavailable, err, format, args...).
		WithHint("is the disk full, or something in the way? --out DIR names another directory")
}

// delivery is a way from one directory to another that no link leads astray.
type delivery struct {
	from, to *os.Root
}

func (l Layout) openDelivery(dest string) (*delivery, error) {
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
	return &delivery{from: from, to: to}, nil
}

// close lets go of the directories, which hold no data.
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

// measure reads a file that we have put below root to say what it is, and that it is found
// below dir. A user's own links in a directory of the user's are followed.
func measure(root *os.Root, name, dir string) (File, error) {
	file, _, err := safefs.OpenInside(root, name)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = file.Close() }() // read only
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return File{}, err
	}
	target := filepath.Join(dir, filepath.FromSlash(name))
	return File{Name: name, Path: target, SizeBytes: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// move renames where both lie on one file system and copies otherwise.
func (d *delivery) move(name string) error {
	if err := own(d.from, name); err != nil {
		return err
	}
	err := d.rename(name)
	if errors.Is(err, syscall.EXDEV) {
		return d.copy(name)
	}
	return err
}

// own makes an ordinary file of ours of it: whatever owner or set-id bits it had are gone.
func own(root *os.Root, name string) error {
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

// rename moves between the two opened directories, whatever became of their paths.
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
	return unix.Renameat(int(from.Fd()), base, int(to.Fd()), base)
}

// copy fills a file of its own name, so that nobody sees half of the result.
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
