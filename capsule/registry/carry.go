package registry

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// Pack writes the files of a unit's version as a tar, for Take at another machine. When they aren't any more what they
// were, the stream is left without its end.
func Pack(u *unit.Unit, w io.Writer) error {
	c, ok := u.Definition.(*capsule.Capsule)
	if !ok {
		return fault.New(fault.Unsupported, "%q is made of no files", u.Name)
	}
	files, err := contentOf(c)
	if err != nil {
		return err
	}
	if err := files.writeBesideOpen(w); err != nil {
		return err
	}
	return files.context.WriteTar(w)
}

// Take stores a version of a unit that Pack wrote, and returns it; one that is there already isn't read again. What
// is another version, or no capsule, is an Input fault.
func (r *Registry) Take(
	ctx context.Context, name, version string, open func(context.Context) (io.ReadCloser, error),
) (u *unit.Unit, err error) {
	if u, err := r.Version(ctx, name, version); err == nil || !fault.Is(err, fault.NotFound) {
		return u, err
	}
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	dir, err := r.home.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files, err := r.receive(ctx, name, dir, open)
	if err != nil {
		return nil, err
	}
	if versionOf(files.digest) != version {
		return nil, fault.New(fault.Input, "the files of %s that came aren't those of its version %s", name, version)
	}
	leave, err := r.writing.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	defer leave()
	return r.ensureStored(files, record{Name: name, Digest: files.digest, Source: unit.FromUpload})
}

// receive unpacks what another machine has packed below a directory.
func (r *Registry) receive(
	ctx context.Context, name, dir string, open func(context.Context) (io.ReadCloser, error),
) (*content, error) {
	archive, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	unpacked, err := r.unpack(ctx, archive, dir, name)
	if err != nil {
		return nil, err
	}
	loaded, err := capsule.Load(unpacked)
	if err != nil {
		return nil, err
	}
	return contentOf(loaded)
}
