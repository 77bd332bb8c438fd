package registry

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// directory is a directory that holds a unit, with its last reading.
type directory struct {
	path string

	gate   *semaphore.Weighted // guards the fields below
	looked time.Time
	last   reading
}

// reading is the state of a directory at one moment.
type reading struct {
	began   time.Time
	name    string
	content *content     // nil if there is a problem
	problem *fault.Error // nil: it may become a version
	watch   watch
	print   fingerprint
	plate   fingerprint // of agent.yaml alone
}

// nameplate watches the file that a unit's name depends on, beside the directory's own
// name.
var nameplate = watch{names: []string{"agent.yaml"}}

// look returns the directory's reading. It reads again only if the directory may have
// changed and may hold the unit of the given name; "" is any name. A caller that waited for
// another's reading takes that reading, if it began late enough.
func (d *directory) look(ctx context.Context, r *Registry, name string) (reading, error) {
	asked := time.Now()
	if err := enter(ctx, d.gate); err != nil {
		return reading{}, err
	}
	defer d.gate.Release(1)
	if !d.last.began.Before(asked) || (r.settle > 0 && asked.Sub(d.looked) < r.settle) {
		return d.last, nil
	}
	if name != "" && d.last.isAnother(name, d.path) {
		return d.last, nil
	}
	d.looked = asked
	if d.last.isStill(d.path) {
		return d.last, nil
	}
	d.last = d.read(r)
	d.report(r)
	return d.last, nil
}

// isStill reports whether the directory is unchanged since the reading began.
func (r reading) isStill(dir string) bool {
	return !r.began.IsZero() && r.print.settledBefore(r.began) && r.watch.fingerprint(dir) == r.print
}

// isAnother reports whether the directory is a good unit that still has another name. Other
// changes don't count.
func (r reading) isAnother(name, dir string) bool {
	return r.content != nil && r.name != name && r.plate.settledBefore(r.began) && nameplate.fingerprint(dir) == r.plate
}

func (d *directory) read(r *Registry) reading {
	now := reading{began: time.Now(), plate: nameplate.fingerprint(d.path)}
	loaded, err := capsule.Load(d.path)
	// A broken capsule's files are watched too, as far as they can be found.
	files, ferr := contentOf(&capsule.Capsule{Dir: d.path})
	now.watch = watchOf(d.path, files)
	now.print = now.watch.fingerprint(d.path)
	if err == nil {
		err = ferr
	}
	if err != nil {
		now.name, now.problem = d.brokenName(r.home), fault.Public(err)
		return now
	}
	if err := api.CheckNotReserved(loaded.Name); err != nil && filepath.Dir(d.path) != r.bundled {
		now.name, now.problem = filepath.Base(d.path), fault.Public(err)
		return now
	}
	now.name, now.content = loaded.Name, files
	return now
}

var nameLine = lazyregexp.New(`(?m)^name:[ \t]*["']?([a-z0-9._-]{1,63})["']?[ \t]*(?:#.*)?\r?$`)

// brokenName names a unit that can't be loaded: the name of its last good version, else the
// name that agent.yaml seems to give, else the directory's name.
func (d *directory) brokenName(h *home) string {
	if name := h.nameFrom(d.path); name != "" {
		return name
	}
	raw, err := readSmall(filepath.Join(d.path, "agent.yaml"))
	if m := nameLine().FindSubmatch(raw); err == nil && m != nil && api.CheckUnitName(string(m[1])) == nil {
		return string(m[1])
	}
	return filepath.Base(d.path)
}

// readSmall reads the beginning of a regular file, at most smallFile bytes.
func readSmall(path string) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, _, err := safefs.OpenRegular(root, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, smallFile))
}

// report logs a reading. It is called once for each reading, not for each look.
func (d *directory) report(r *Registry) {
	r.logger.Debug("unit read", "unit", d.last.name, "took_ms", time.Since(d.last.began).Milliseconds())
	if p := d.last.problem; p != nil {
		r.logger.Warn("unit broken", "unit", d.last.name, "problems", len(p.Findings))
	}
}
