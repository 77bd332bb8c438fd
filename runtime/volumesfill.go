package runtime

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// writableName is the directory below aodDir in which the init writes its report and the
// far end of the tunnel makes its socket: aodDir itself is read-only.
const writableName = "reach"

// fill copies the layout's directories into the volumes.
func (v *volumes) fill(ctx context.Context) error {
	return v.withCarrier(ctx, func(id string) error { return v.send(ctx, id, carrierDir, v.pack) })
}

// fillOnce fills the volumes unless they are filled. The report is written last: once it is
// there, a program may be running.
func (v *volumes) fillOnce(ctx context.Context) error {
	return v.withCarrier(ctx, func(id string) error {
		_, err := v.engine.StatIn(ctx, id, path.Join(carrierDir, writableName, "report"))
		if fault.Is(err, fault.NotFound) {
			return v.send(ctx, id, carrierDir, v.pack)
		}
		return err
	})
}

// send streams the tar that pack writes into a directory of a container.
func (v *volumes) send(ctx context.Context, id, dir string, pack func(*packer) error) error {
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
	err := v.engine.CopyTo(ctx, id, dir, r)
	_ = r.Close() // the packer waits no longer for a reader
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		return unwritable(packErr) // the engine's own error only follows from it
	}
	return err
}

// pack packs all volumes.
func (v *volumes) pack(p *packer) error {
	for _, one := range v.all() {
		if one.name == writableName {
			continue
		}
		if err := p.tree(one.source, one.name); err != nil {
			return err
		}
	}
	program, err := initbin.Tunnel(v.spec.Image.Arch)
	if err != nil {
		return err
	}
	// The sandbox's user may make files in the writable directory, and can't remove the report.
	return errors.Join(
		p.dir(path.Join("aod", writableName), 0o755),
		p.link("aod/"+socketName, tunnel.Socket),
		p.tunnel(program),
		p.dir(writableName, 0o1777),
		p.file(v.layout.path("aod/"+stdoutName), path.Join(writableName, stdoutName)),
		p.file(v.layout.path("aod/report"), path.Join(writableName, "report")),
	)
}

// tunnel packs the program of the tunnel's far end. None means that the init is that program, too:
// it looks under which path it is started.
func (p *packer) tunnel(program []byte) error {
	name := path.Join("aod", path.Base(tunnel.Program))
	if program == nil {
		return p.link(name, initPath)
	}
	return p.bytes(name, program, 0o555)
}
