package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
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
func (r *Registry) adopt(ctx context.Context, files *content, rec record) (*unit.Unit, bool, error) {
	return r.adoptIf(ctx, files, rec, func() error { return nil })
}

// adoptIf is adopt, unless allowed returns an error while no other version can become current.
func (r *Registry) adoptIf(
	ctx context.Context, files *content, rec record, allowed func() error,
) (u *unit.Unit, changed bool, err error) {
	rec.Digest = files.digest
	version := versionOf(rec.Digest)
	leave, err := r.writing.enter(ctx, rec.Name)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if err := allowed(); err != nil {
		return nil, false, err
	}
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
	if !known || of.rec != rec || of.unit.Policy.Change != r.change() {
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
	loaded.Name = rec.Name // that of an upload may stand there without its team
	u := r.unitOf(loaded, rec.Source)
	u.Version, u.Origin, u.By, u.Team, u.Since = version, rec.Origin, rec.By, rec.team(), rec.Since
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

// Upload says how Put takes an archive.
type Upload struct {
	By      string // the name of the token of who uploads
	Team    string // to which the unit belongs, and with which its name may begin; "": to api.DefaultTeam
	OnlyNew bool   // another upload of this name stays as it is, and the error is an Exists fault
	Onto    string // the version that must be the current one, or the error is a Conflict fault; "": whichever
}

// Put makes the capsule in an archive the current version of a unit. The archive is a tar,
// plain or gzip-compressed, of the content of a capsule's directory, or of the directory
// itself. Put reports whether another version, or none, was current before.
//
// Only files, directories and links that stay inside are taken; of modes, only whether a
// file is executable. The error is BadRequest for bytes that are no archive, Input for
// refused entries and for a name that is not the capsule's own, TooLarge beyond the limits,
// Capsule with every problem of the capsule, Conflict if a directory has the name. A
// refused upload leaves nothing behind.
func (r *Registry) Put(
	ctx context.Context, name string, archive io.Reader, how Upload,
) (u *unit.Unit, created bool, err error) {
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
	files, err := r.readUpload(ctx, unpacked, name, how)
	if err != nil {
		return nil, false, err
	}
	rec := record{Name: name, Source: unit.FromUpload, By: how.By, Team: how.Team}
	return r.adoptIf(ctx, files, rec, func() error { return r.replaces(name, files.digest, how) })
}

// replaces returns the Exists fault of an upload that must be new, where there is another one, and the Conflict fault
// of one that must replace a version, where that isn't the current one. The same content again is neither.
func (r *Registry) replaces(name, digest string, how Upload) error {
	version, err := r.home.current(name)
	switch {
	case err == nil && version == versionOf(digest):
		return nil
	case how.Onto != "" && version != how.Onto:
		return fault.New(fault.Conflict, "the unit %s has changed: its version isn't %s any more", name, how.Onto).
			WithHint("`aod units versions %s` lists its versions: put your change into the current one", name)
	case err != nil || !how.OnlyNew || !r.isUpload(name):
		return nil //nolint:nilerr // there is none, or a damaged one, which is written again
	}
	rec, err := r.home.record(name, version)
	if err != nil {
		return err
	}
	return fault.New(fault.Exists, "the server has another unit %s, uploaded%s at %s", name, byText(rec.By),
		rec.Since.Format(time.RFC3339)).
		WithHint("`aod run DIR --replace` replaces it; `aod units versions %s` lists what can be rolled back to", name)
}

func byText(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

// mayPut refuses the names of directories: the next Get would replace the upload.
func (r *Registry) mayPut(ctx context.Context, name string) error {
	here, _, err := r.find(ctx, name)
	if err == nil && len(here) > 0 {
		err = fault.New(fault.Conflict, "the unit %s is kept in a directory of the server, %s, so it can't be uploaded",
			name, here[0].path).
			WithHint("`aod run %s` runs it; change it there, or upload yours under another name", name)
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
func (r *Registry) readUpload(ctx context.Context, dir, name string, how Upload) (*content, error) {
	loaded, err := capsule.Load(dir)
	if err != nil {
		public := fault.Public(err)
		return nil, fault.Wrap(public.Kind, err, "the uploaded capsule %s has problems", name).
			WithHint("fix what is listed and upload it again").WithFindings(public.Findings)
	}
	if err := api.CheckNotReserved(loaded.Name); err != nil {
		return nil, err
	}
	if api.InTeam(how.Team, loaded.Name) != name {
		return nil, fault.New(fault.Input, "the uploaded capsule calls itself %s, not %s", loaded.Name, name).
			WithHint("upload it as %s, or set name: %s in its agent.yaml", loaded.Name, name)
	}
	loaded.Name = name
	files, err := contentOf(loaded)
	if err == nil {
		err = r.replaces(name, files.digest, how) // before its image is built
	}
	if err == nil && r.accept != nil {
		err = r.accept(ctx, r.unitOf(loaded, unit.FromUpload))
	}
	return files, err
}
