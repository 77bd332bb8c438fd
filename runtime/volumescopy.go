package runtime

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// writableName is the directory below aodDir in which the init writes its report and the
// far end of the tunnel makes its socket: aodDir itself is read-only.
const writableName = "reach"

// fill copies the layout's directories into the volumes.
func (v *volumes) fill(ctx context.Context) error {
	if v == nil {
		return nil
	}
	return v.withCarrier(ctx, func(id string) error { return v.send(ctx, id, carrierDir, v.pack) })
}

// fillOnce fills the volumes unless they are filled. The report is written last: once it is
// there, a program may be running.
func (v *volumes) fillOnce(ctx context.Context) error {
	if v == nil {
		return nil
	}
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

// fetch copies the init's report, the program's result and its output files into the layout's
// directories. The first file that goes over a limit becomes a hole of its size: later checks find
// it too large.
func (v *volumes) fetch(ctx context.Context) error {
	if v == nil {
		return nil
	}
	return v.withCarrier(ctx, func(id string) error {
		for _, part := range v.results() {
			if err := v.fetchTree(ctx, id, part.from, part.name, &part.room); err != nil {
				return err
			}
		}
		return nil
	})
}

// result is a file or directory that a run may leave.
type result struct {
	from string // in a carrier
	name string // in the layout
	room allowance
}

// results lists what a run may leave, with the limit of each.
func (v *volumes) results() []result {
	limits, writable := v.spec.Limits, path.Join(carrierDir, writableName)
	results := []result{{path.Join(writable, "report"), "aod/report", allowance{initreport.MaxBytes, watchEntries}}}
	results = append(results, v.outputs(writable)...)
	if v.spec.Filter != nil {
		return results
	}
	return append(
		results,
		result{
			path.Join(carrierDir, "io", resultName), "io/" + resultName,
			allowance{limits.ResultBytes, watchEntries},
		},
		// the directory itself counts
		result{v.outputDir(), "io/output", allowance{limits.OutputBytes, limits.OutputFiles + 1}},
	)
}

// outputs lists what a program with Stdio may leave.
func (v *volumes) outputs(writable string) []result {
	stdio := v.spec.Stdio
	if stdio == nil {
		return nil
	}
	most := cmp.Or(stdio.FetchBytes, v.spec.Limits.ResultBytes)
	list := []result{{path.Join(writable, stdoutName), "aod/" + stdoutName, allowance{most, watchEntries}}}
	if stdio.Output != "" {
		list = append(list, result{
			path.Join(carrierDir, "workspace", stdio.Output), "workspace/" + stdio.Output,
			allowance{most, watchEntries},
		})
	}
	return list
}

// placeOf is the place in a carrier of a directory that the program writes to, by its address in the sandbox.
func (v *volumes) placeOf(dir string) string {
	if dir == outgoingDir {
		return path.Join(carrierDir, "outgoing")
	}
	return v.outputDir()
}

// outputDir is the place of /io/output in a carrier.
func (v *volumes) outputDir() string {
	if slices.ContainsFunc(v.all(), func(one volume) bool { return one.target == ioDir+"/output" }) {
		return path.Join(carrierDir, "output")
	}
	return path.Join(carrierDir, "io", "output")
}

// fetchTree replaces a file or directory of the layout with the one at from in the carrier.
// Where there is none, it only removes the layout's.
func (v *volumes) fetchTree(ctx context.Context, id, from, name string, allowance *allowance) error {
	into := v.layout.path("arriving")
	if err := errors.Join(safefs.RemoveTree(into), safefs.RemoveTree(v.layout.path(name)),
		mkdir(into, 0o700)); err != nil {
		return unwritable(err)
	}
	if err := v.copyOut(ctx, id, from, into, allowance); err != nil {
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
	return unwritable(errors.Join(
		os.MkdirAll(path.Dir(v.layout.path(name)), 0o755),
		os.Rename(path.Join(into, path.Base(name)), v.layout.path(name)),
	))
}

// copyOut copies a file or directory of the container into a directory of this host.
func (v *volumes) copyOut(ctx context.Context, id, from, into string, allowance *allowance) (err error) {
	stream, err := v.engine.CopyFrom(ctx, id, from)
	if err != nil {
		return fmt.Errorf("fetch files: %w", err)
	}
	defer func() {
		if closed := stream.Close(); !errors.Is(closed, io.EOF) {
			err = errors.Join(err, closed)
		}
	}()
	root, err := os.OpenRoot(into)
	if err != nil {
		return unwritable(err)
	}
	defer func() { _ = root.Close() }() // what was written was closed
	return unpack(root, stream, allowance)
}
