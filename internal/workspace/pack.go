package workspace

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Stored returns the project that Unpack has stored in a directory of ours, as WriteTar sends it on.
func Stored(dir string) (*Project, error) {
	p := &Project{dir: dir, limits: Limits{Bytes: math.MaxInt64, Files: math.MaxInt}}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, at)
		p.names = append(p.names, filepath.ToSlash(name))
		return err
	})
	return p, err
}

// WriteTar writes the project as a tar stream. It can be called again. The error is a fault
// where a file isn't any more what Scan saw, else that of w; the stream has no end then.
func (p *Project) WriteTar(w io.Writer) error {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return unreadable(p.dir, err)
	}
	defer func() { _ = root.Close() }() // holds no data
	packed := packer{root: root, tar: tar.NewWriter(w), left: p.limits.Bytes}
	if p.config != nil {
		if err := packed.content(gitConfig, p.config); err != nil {
			return err
		}
	}
	for _, name := range p.names {
		if err := packed.add(name); err != nil {
			return err
		}
	}
	return packed.tar.Close()
}

type packer struct {
	root *os.Root
	tar  *tar.Writer
	left int64 // bytes that the project may still have
}

func (p *packer) add(name string) error {
	if name == packedRefs {
		raw, err := withoutRemotes(p.root)
		if err != nil {
			return changed(name)
		}
		return p.content(name, raw)
	}
	info, err := p.root.Lstat(name)
	if err != nil {
		return changed(name)
	}
	if gitMode(info.Mode()) == modeLink {
		return p.link(name)
	}
	f, info, err := safefs.OpenRegular(p.root, name)
	if irregular := (*safefs.Irregular)(nil); errors.As(err, &irregular) {
		return changed(name)
	}
	if err != nil {
		return refused(name, "can't be read: "+safefs.Reason(err))
	}
	defer func() { _ = f.Close() }() // read only
	if p.left -= info.Size(); p.left < 0 {
		return changed(name)
	}
	err = p.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: int64(permOf(gitMode(info.Mode()))),
		ModTime: time.Unix(0, 0),
	})
	if err != nil {
		return err
	}
	return p.copy(name, f, info.Size())
}

// copy copies exactly as many bytes as the header says.
func (p *packer) copy(name string, f *os.File, size int64) error {
	in := &reading{r: f}
	n, err := io.Copy(p.tar, io.LimitReader(in, size))
	if err != nil && in.err == nil {
		return err
	}
	more, _ := f.Read(make([]byte, 1))
	if in.err != nil || n != size || more > 0 {
		return changed(name)
	}
	return nil
}

func (p *packer) link(name string) error {
	target, err := p.root.Readlink(name)
	if err != nil || linkProblem(name, target) != "" {
		return changed(name)
	}
	return p.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777,
		ModTime: time.Unix(0, 0),
	})
}

func (p *packer) content(name string, raw []byte) error {
	err := p.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(raw)), Mode: 0o644,
		ModTime: time.Unix(0, 0),
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(p.tar, bytes.NewReader(raw))
	return err
}

// reading remembers the error of a reader, to tell it from one of the writer.
type reading struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (r *reading) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// changed is the fault for a file that didn't hold still.
func changed(name string) *fault.Error {
	return fault.New(fault.Conflict, "%s changed while the project was copied", fault.Quote(name)).
		WithHint("try again when nothing writes there, or name it in .aodignore")
}
