package runtime

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// FileTransfer copies the files of a run's handoffs from and to a remote engine.
type FileTransfer struct{ volumes *volumes }

// sentFiles are the files that the sandbox has already.
type sentFiles struct {
	mu    sync.Mutex
	names map[string]bool
}

// Fetch copies files of /io/handoff/outgoing or /io/output, by their clean names, into a new directory of
// this host. It copies about maxBytes bytes; the file that goes over is a hole of its size
// here. A missing file is missing here, too, and a special file is special here. The caller
// calls done when it has opened the files. The error is the engine's, or an Unavailable fault.
func (t *FileTransfer) Fetch(
	ctx context.Context, from string, names []string, maxBytes int64,
) (dir string, done func(), err error) {
	dir, err = os.MkdirTemp(t.volumes.layout.Dir, "outgoing-")
	if err != nil {
		return "", nil, unwritable(err)
	}
	done = func() { _ = safefs.RemoveTree(dir) } // if it fails, the end of the run removes it
	room := allowance{maxBytes, watchEntries}
	err = t.volumes.withCarrier(ctx, func(id string) error {
		for _, name := range names {
			if err := t.fetch(ctx, id, t.volumes.placeOf(from), name, dir, &room); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		done()
		return "", nil, err
	}
	return dir, done, nil
}

// fetch copies one file. It checks every directory above it: the engine would follow a link
// there, within the run's own files.
func (t *FileTransfer) fetch(ctx context.Context, id, from, name, into string, room *allowance) error {
	at, rest := "", strings.Split(name, "/")
	for ; len(rest) > 0; rest = rest[1:] {
		parent := path.Join(into, at)
		at = path.Join(at, rest[0])
		stat, err := t.volumes.engine.StatIn(ctx, id, path.Join(from, at))
		switch {
		case fault.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		case stat.Mode.IsDir():
			if err := os.Mkdir(path.Join(into, at), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return unwritable(err)
			}
			continue
		}
		if _, err := os.Lstat(path.Join(into, at)); err == nil {
			return nil // it was fetched by another name
		}
		return t.volumes.copyOut(ctx, id, path.Join(from, at), parent, room)
	}
	return nil
}

// Send copies files of Layout.Incoming into /io/handoff/incoming. It leaves out files that
// were sent before. The error is the engine's, or an Unavailable fault.
func (t *FileTransfer) Send(ctx context.Context, names []string) error {
	sent := &t.volumes.sent
	sent.mu.Lock()
	defer sent.mu.Unlock()
	fresh := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return sent.names[name] })
	if len(fresh) == 0 {
		return nil
	}
	err := t.volumes.withCarrier(ctx, func(id string) error {
		return t.volumes.send(ctx, id, path.Join(carrierDir, "incoming"),
			func(to *packer) error { return t.pack(to, fresh) })
	})
	if err != nil {
		return err
	}
	if sent.names == nil {
		sent.names = map[string]bool{}
	}
	for _, name := range fresh {
		sent.names[name] = true
	}
	return nil
}

func (t *FileTransfer) pack(to *packer, names []string) error {
	made := map[string]bool{".": true}
	for _, name := range names {
		if err := to.parents(path.Dir(name), made); err != nil {
			return err
		}
		if err := to.file(path.Join(t.volumes.layout.Incoming(), name), name); err != nil {
			return err
		}
	}
	return nil
}
