package runtime

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
)

// Porter carries the files of a run's handoffs to and from a remote engine.
type Porter struct{ depot *depot }

// sentFiles are those that the sandbox has already.
type sentFiles struct {
	mu    sync.Mutex
	names map[string]bool
}

// Fetch brings files of /io/handoff/outgoing, by their clean names, into a new directory of
// this host: about as many bytes as maxBytes, and what is more as a hole. What is missing
// there is missing here, and what isn't a regular file isn't one here. The caller calls done
// when it has opened what it needs.
func (p *Porter) Fetch(ctx context.Context, names []string, maxBytes int64) (dir string, done func(), err error) {
	dir, err = os.MkdirTemp(p.depot.layout.Dir, "outgoing-")
	if err != nil {
		return "", nil, unwritable(err)
	}
	done = func() { _ = safefs.RemoveTree(dir) } // and if not now, then with the run
	room := allowance{maxBytes, watchEntries}
	err = p.depot.with(ctx, func(id string) error {
		for _, name := range names {
			if err := p.fetch(ctx, id, name, dir, &room); err != nil {
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

// fetch brings one file. It looks at every directory on the way: the engine would follow
// a link there, within the run's own files.
func (p *Porter) fetch(ctx context.Context, id, name, into string, room *allowance) error {
	at, rest := "", strings.Split(name, "/")
	for ; len(rest) > 0; rest = rest[1:] {
		parent := path.Join(into, at)
		at = path.Join(at, rest[0])
		stat, err := p.depot.engine.StatIn(ctx, id, path.Join(depotDir, "outgoing", at))
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
			return nil // another name brought it
		}
		return p.depot.copyOut(ctx, id, path.Join(depotDir, "outgoing", at), parent, room)
	}
	return nil
}

// Send makes files that lie in Layout.Incoming appear in /io/handoff/incoming. Those that
// were sent before are not sent again.
func (p *Porter) Send(ctx context.Context, names []string) error {
	sent := &p.depot.sent
	sent.mu.Lock()
	defer sent.mu.Unlock()
	var fresh []string
	for _, name := range names {
		if !sent.names[name] {
			fresh = append(fresh, name)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	err := p.depot.with(ctx, func(id string) error {
		return p.depot.send(ctx, id, path.Join(depotDir, "incoming"), func(to *packer) error { return p.pack(to, fresh) })
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

func (p *Porter) pack(to *packer, names []string) error {
	made := map[string]bool{".": true}
	for _, name := range names {
		if err := packDirs(to, path.Dir(name), made); err != nil {
			return err
		}
		if err := to.file(path.Join(p.depot.layout.Incoming(), name), name); err != nil {
			return err
		}
	}
	return nil
}

func packDirs(to *packer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := packDirs(to, path.Dir(dir), made); err != nil {
		return err
	}
	return to.dir(dir, 0o755)
}
