package runtime

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/tunnel"
)

const (
	// reachName is the directory, below aodDir, in which the init leaves its report and
	// the far end of the tunnel its socket: aodDir itself is read-only.
	reachName = "reach"
	// tunnelName is the far end's program, in aodDir. The next process runs it in a sandbox
	// that it adopts, so that the name stays.
	tunnelName = "line"
)

// fill puts into the volumes what the layout's directories hold.
func (d *depot) fill(ctx context.Context) error {
	return d.with(ctx, func(id string) error { return d.send(ctx, id, depotDir, d.pack) })
}

// refill fills them unless they are full. The report comes last, and once it is there a
// program may be running.
func (d *depot) refill(ctx context.Context) error {
	return d.with(ctx, func(id string) error {
		_, err := d.engine.StatIn(ctx, id, path.Join(depotDir, reachName, "report"))
		if fault.Is(err, fault.NotFound) {
			return d.send(ctx, id, depotDir, d.pack)
		}
		return err
	})
}

// send streams a tar into a container.
func (d *depot) send(ctx context.Context, id, dir string, pack func(*packer) error) error {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		p := packer{tar.NewWriter(w)}
		err := pack(&p)
		if err == nil {
			err = p.tar.Close()
		}
		w.CloseWithError(err)
		packed <- err
	}()
	defer context.AfterFunc(ctx, func() { _ = r.Close() })() // as CopyTo asks for
	err := d.engine.CopyTo(ctx, id, dir, r)
	_ = r.Close() // the packer doesn't wait for who has gone
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		return unwritable(packErr) // what the engine says then follows from it
	}
	return err
}

func (d *depot) pack(p *packer) error {
	for _, s := range d.shelves() {
		if s.name == reachName {
			continue
		}
		if err := p.tree(s.source, s.name); err != nil {
			return err
		}
	}
	program, err := initbin.Tunnel(d.spec.Image.Arch)
	if err != nil {
		return err
	}
	// Who has the sandbox's user id may make files here and not remove the report.
	return errors.Join(
		p.dir(path.Join("aod", reachName), 0o755),
		p.link("aod/"+socketName, tunnel.Socket),
		p.bytes("aod/"+tunnelName, program, 0o555),
		p.dir(reachName, 0o1777),
		p.file(d.layout.path("aod/"+stdoutName), path.Join(reachName, stdoutName)),
		p.file(d.layout.path("aod/report"), path.Join(reachName, "report")),
	)
}

// packer writes files of ours, all of them root's, into a tar.
type packer struct{ tar *tar.Writer }

// tree packs a directory of this host with its directories and regular files under another
// name: what else is there was made for this host.
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
			return p.dirLike(entry, target)
		case entry.Type().IsRegular():
			return p.file(at, target)
		}
		return nil
	})
}

func (p *packer) dirLike(entry fs.DirEntry, name string) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	return p.dir(name, int64(info.Mode().Perm()))
}

func (p *packer) dir(name string, mode int64) error {
	return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Format: tar.FormatPAX})
}

func (p *packer) link(name, to string) error {
	return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777, Format: tar.FormatPAX})
}

func (p *packer) bytes(name string, content []byte, mode int64) error {
	header := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: mode, Format: tar.FormatPAX}
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
