package runtime

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// packer writes files of this host into a tar. All of them are root's there.
type packer struct{ tar *tar.Writer }

// tree packs a directory of this host, with the directories and regular files below it, under
// another name. It leaves out links and special files: they serve this host only.
func (p *packer) tree(source, name string) error {
	return filepath.WalkDir(source, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, at)
		if err != nil {
			return err
		}
		target := path.Join(name, filepath.ToSlash(rel))
		switch {
		case entry.IsDir():
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return p.dir(target, int64(info.Mode().Perm()))
		case entry.Type().IsRegular():
			return p.file(at, target)
		}
		return nil
	})
}

func (p *packer) dir(name string, mode int64) error {
	return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Format: tar.FormatPAX})
}

func (p *packer) link(name, to string) error {
	return p.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777,
		Format: tar.FormatPAX,
	})
}

func (p *packer) bytes(name string, content []byte, mode int64) error {
	header := tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: mode,
		Format: tar.FormatPAX,
	}
	if err := p.tar.WriteHeader(&header); err != nil {
		return err
	}
	_, err := p.tar.Write(content)
	return err
}

func (p *packer) file(source, name string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: info.Size(), ModTime: info.ModTime(),
		Mode: int64(info.Mode().Perm()), Format: tar.FormatPAX,
	}
	if err := p.tar.WriteHeader(&header); err != nil {
		return err
	}
	if _, err := io.Copy(p.tar, f); err != nil {
		return fmt.Errorf("pack %q: %w", name, err)
	}
	return nil
}

// parents packs a directory and those above it, except those that were made.
func (p *packer) parents(dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := p.parents(path.Dir(dir), made); err != nil {
		return err
	}
	return p.dir(dir, 0o755)
}

// allowance is how much may still be unpacked.
type allowance struct {
	bytes   int64
	entries int
}

func (a *allowance) overdrawn() bool { return a.bytes < 0 || a.entries < 0 }

// unpack unpacks the tar of a container's files below root. Names are as hostile as contents:
// nothing is written outside root. Links and FIFOs are made as such: a later check reports
// them. Owners and set-id bits are dropped.
//
// It ends with the first entry that goes over the allowance. That entry is made, too, a file
// as a hole of its size: a later check finds it too large.
func unpack(root *os.Root, r io.Reader, allowance *allowance) error {
	u := unpacker{root: root, tar: tar.NewReader(r)}
	for {
		header, err := u.tar.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return interrupted(err)
		}
		allowance.bytes -= header.Size
		allowance.entries--
		u.full = allowance.overdrawn()
		if err := u.entry(header); err != nil || u.full {
			return err
		}
	}
}

// interrupted says that the stream ended too early.
func interrupted(err error) error {
	return fault.Wrap(fault.Unavailable, fmt.Errorf("%w: %w", ErrUnreachable, err),
		"the engine broke off the run's files")
}

// maxHole is larger than any limit and smaller than what file systems can name.
const maxHole = 1 << 40

type unpacker struct {
	root *os.Root
	tar  *tar.Reader
	full bool // the allowance is used up: files become holes
}

func (u unpacker) entry(header *tar.Header) error {
	name := path.Clean(header.Name)
	if strings.Count(name, "/") > safefs.MaxDepth {
		return nil // no check goes as deep as that
	}
	err := u.make(name, header)
	var broken *fault.Error
	if err == nil || errors.As(err, &broken) {
		return err
	}
	return fault.Wrap(fault.Unavailable, nameless(err), "a file of the run can't be written here").
		WithHint("is the disk full? --data DIR puts runs elsewhere")
}

func (u unpacker) make(name string, header *tar.Header) error {
	switch header.Typeflag {
	case tar.TypeDir:
		return u.root.Mkdir(name, 0o755)
	case tar.TypeReg:
		return u.file(name, header.Size)
	case tar.TypeSymlink:
		return u.root.Symlink(header.Linkname, name)
	case tar.TypeLink:
		if to := path.Clean(header.Linkname); strings.Count(to, "/") <= safefs.MaxDepth {
			return u.root.Link(to, name)
		}
	case tar.TypeFifo:
		return u.fifo(name)
	}
	return nil // a target too deep, or a kind of file that needs privileges, which a sandbox lacks
}

func (u unpacker) file(name string, size int64) (err error) {
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if u.full {
		return f.Truncate(min(size, maxHole))
	}
	_, err = io.Copy(f, u.tar)
	var unwritten *fs.PathError
	if err == nil || errors.As(err, &unwritten) {
		return err
	}
	return interrupted(err)
}

func (u unpacker) fifo(name string) error {
	dir, err := safefs.OpenDir(u.root, path.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // holds no data
	return makeFIFO(dir, path.Base(name))
}

// nameless takes the file's name out of an error: the program chose it.
func nameless(err error) error {
	var broken *fs.PathError
	if errors.As(err, &broken) {
		return fmt.Errorf("%s: %w", broken.Op, broken.Err)
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return fmt.Errorf("%s: %w", link.Op, link.Err)
	}
	return err
}
