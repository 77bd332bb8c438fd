package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// serve returns the unit of a directory. A good reading becomes its current version. A
// broken reading returns the last good version with the problem in it. If there never was a
// good version, the error is that problem.
func (r *Registry) serve(ctx context.Context, f found) (*unit.Unit, error) {
	problem := f.problem
	if problem == nil {
		u, _, err := r.adopt(ctx, f.content, record{Name: f.name, Source: unit.FromDirectory, Origin: f.path})
		if !fault.Is(err, fault.Capsule) {
			return u, err
		}
		problem = fault.Public(err) // the directory changed since it was read
	}
	u, err := r.current(f.name)
	if fault.Is(err, fault.NotFound) {
		return nil, problem
	}
	if err != nil {
		return nil, err
	}
	broken := *u
	broken.Problem = problem
	return &broken, nil
}

// adopt makes a content the current version of its unit, and stores it if it isn't stored
// yet. It reports whether another version was current before. The error is a Capsule fault
// if the files have changed since they were read.
func (r *Registry) adopt(ctx context.Context, files *content, rec record) (u *unit.Unit, changed bool, err error) {
	rec.Digest = files.digest
	version := versionOf(rec.Digest)
	leave, err := r.writing.enter(ctx, rec.Name)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if u, err = r.ensureStored(files, rec); err != nil {
		return nil, false, err
	}
	before, err := r.home.current(rec.Name)
	if err == nil && before == version {
		return u, false, nil
	}
	if err := r.home.setCurrent(rec.Name, rec.Digest); err != nil { // an unreadable file is written again
		return nil, false, err
	}
	r.logger.Info("unit version", "unit", rec.Name, "version", version, "source", rec.Source)
	return u, true, nil
}

// ensureStored returns the stored version of a content. A damaged version is replaced. If
// the version came from another source before, its record now names the newer source.
func (r *Registry) ensureStored(files *content, rec record) (*unit.Unit, error) {
	version := versionOf(rec.Digest)
	old, err := r.home.record(rec.Name, version)
	if err == nil && old.Digest == rec.Digest {
		if u, err := r.open(rec.Name, version); err == nil {
			return r.relabel(u, old, rec)
		}
	}
	if err := r.discard(rec.Name, version); err != nil {
		return nil, fmt.Errorf("discard version: %w", err)
	}
	rec.Since = time.Now().UTC()
	if err := r.store(files, rec); err != nil {
		return nil, err
	}
	return r.open(rec.Name, version)
}

func (r *Registry) relabel(u *unit.Unit, old, rec record) (*unit.Unit, error) {
	if old.Source == rec.Source && old.Origin == rec.Origin {
		return u, nil
	}
	rec.Since = old.Since
	if err := r.home.setRecord(r.home.version(rec.Name, u.Version), rec); err != nil {
		return nil, err
	}
	return r.open(rec.Name, u.Version) // its policy depends on its source
}

// store writes a version. The version appears at once, complete and checked.
func (r *Registry) store(files *content, rec record) (err error) {
	dir, err := r.home.temp()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	target := filepath.Join(dir, rec.Name)
	if err := files.copyTo(target); err != nil {
		return err
	}
	if _, err := r.loadChecked(target, rec.Digest); err != nil {
		return moved(err)
	}
	if err := r.home.setRecord(dir, rec); err != nil {
		return err
	}
	return r.home.moveIn(dir, rec)
}

// open returns a stored version. Its files are checked when they are first loaded.
func (r *Registry) open(name, version string) (*unit.Unit, error) {
	rec, err := r.home.record(name, version)
	if err != nil {
		return nil, err
	}
	key := cacheKey{name, version}
	of, known := r.cache.get(key)
	if !known || of.rec != rec {
		if of, err = r.load(rec, of.capsule); err != nil {
			return nil, r.lost(name, version, err)
		}
		r.cache.put(key, of)
	}
	return of.unit, nil
}

// load returns what is kept in memory of a version; loaded is nil where its files have to be read.
func (r *Registry) load(rec record, loaded *capsule.Capsule) (cached, error) {
	version := versionOf(rec.Digest)
	if loaded == nil {
		var err error
		if loaded, err = r.loadChecked(r.home.files(rec.Name, version), rec.Digest); err != nil {
			return cached{}, err
		}
	}
	u := r.unitOf(loaded, rec.Source)
	u.Version, u.Origin, u.Since = version, rec.Origin, rec.Since
	return cached{loaded, u, rec}, nil
}

// unitOf returns the unit of a capsule from a source, with the policy that holds for it.
func (r *Registry) unitOf(c *capsule.Capsule, source string) *unit.Unit {
	u := unit.Of(c)
	u.Source = source
	if r.govern != nil {
		r.govern(u)
	}
	return u
}

// lost says why a version can't be loaded: it has been pruned, or it is damaged.
func (r *Registry) lost(name, version string, err error) error {
	if _, gone := r.home.record(name, version); gone != nil {
		return gone
	}
	return damaged(name, version, err)
}

// loadChecked loads a copy and compares its digest with the original's.
func (r *Registry) loadChecked(dir, digest string) (*capsule.Capsule, error) {
	loaded, err := capsule.Load(dir)
	if err != nil {
		return nil, err
	}
	files, err := contentOf(loaded)
	if err != nil {
		return nil, err
	}
	if files.digest != digest {
		return nil, errors.New("it isn't what was stored")
	}
	return loaded, nil
}

func (r *Registry) discard(name, version string) error {
	r.cache.drop(cacheKey{name, version})
	return r.home.discard(name, version)
}
