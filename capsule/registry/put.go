package registry

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// Put makes the capsule in an archive the current version of a unit. The archive is a tar,
// plain or gzip-compressed, of the content of a capsule's directory, or of the directory
// itself. Put reports whether another version, or none, was current before.
//
// Only files, directories and links that stay inside are taken; of modes, only whether a
// file is executable. The error is BadRequest for bytes that are no archive, Input for
// refused entries and for a name that is not the capsule's own, TooLarge beyond the limits,
// Capsule with every problem of the capsule, Conflict if a directory has the name. A
// refused upload leaves nothing behind.
func (r *Registry) Put(ctx context.Context, name string, archive io.Reader) (u *unit.Unit, created bool, err error) {
	if err := r.mayPut(ctx, name); err != nil {
		return nil, false, err
	}
	dir, err := r.home.temp()
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	unpacked, err := r.unpack(ctx, archive, dir, name)
	if err != nil {
		return nil, false, err
	}
	files, err := r.readUpload(ctx, unpacked, name)
	if err != nil {
		return nil, false, err
	}
	return r.adopt(ctx, files, record{Name: name, Source: unit.FromUpload})
}

// mayPut refuses the names of directories: the next Get would replace the upload.
func (r *Registry) mayPut(ctx context.Context, name string) error {
	here, _, err := r.find(ctx, name)
	if err == nil && here != nil {
		err = fault.New(fault.Conflict, "the unit %s is kept in a directory of the server, so it can't be uploaded",
			name).
			WithHint("change it there, or upload under another name")
	}
	return err
}

// unpack writes an archive below a directory and returns the capsule's directory. That has
// the unit's name, which counts if agent.yaml gives none.
func (r *Registry) unpack(ctx context.Context, archive io.Reader, dir, name string) (string, error) {
	stream, err := openArchive(ctx, archive, r.limits)
	if err != nil {
		return "", err
	}
	in, capsuleDir := filepath.Join(dir, "in"), filepath.Join(dir, "as", name)
	u, err := newUnpacker(in, r.limits)
	if err != nil {
		return "", err
	}
	defer u.root.Close()
	if err := u.read(stream); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, stream); err != nil { // a checksum may come at the end
		return "", unreadableArchive(err)
	}
	top := u.topDirectory()
	if err := u.makeLinks(insideOf(top, r.limits)); err != nil {
		return "", err
	}
	return capsuleDir, unwritable(errors.Join(os.Mkdir(filepath.Dir(capsuleDir), 0o700),
		os.Rename(filepath.Join(in, top), capsuleDir)))
}

// readUpload reads an unpacked capsule. The capsule must have the requested name and pass
// Options.Accept.
func (r *Registry) readUpload(ctx context.Context, dir, name string) (*content, error) {
	loaded, err := capsule.Load(dir)
	if err != nil {
		public := fault.Public(err)
		return nil, fault.Wrap(public.Kind, err, "the uploaded capsule %s has problems", name).
			WithHint("mend what is listed and upload it again").WithFindings(public.Findings)
	}
	if loaded.Name != name {
		return nil, fault.New(fault.Input, "the uploaded capsule calls itself %s, not %s", loaded.Name, name).
			WithHint("upload it as %s, or set name: %s in its agent.yaml", loaded.Name, name)
	}
	if r.accept != nil {
		if err := r.accept(ctx, r.unitOf(loaded, unit.FromUpload)); err != nil {
			return nil, err
		}
	}
	return contentOf(loaded)
}
