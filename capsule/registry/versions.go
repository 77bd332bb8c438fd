package registry

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// KeptUploads is how many versions of an uploaded unit Prune keeps, the newest ones.
const KeptUploads = 5

// Stored is a version that is kept.
type Stored struct {
	Version string
	Source  string
	Origin  string    // the directory; "" for an upload
	By      string    // the name of the token that uploaded it; "": the server's own, or none
	Team    string    // to which an upload belongs; "" of a directory
	Since   time.Time // when it was first stored
	Current bool      // runs get it
}

// Versions lists the kept versions of a unit, the newest first; none is current of a unit that
// was removed. The error is NotFound if none is kept.
func (r *Registry) Versions(ctx context.Context, name string) ([]Stored, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	if _, err := r.Get(ctx, name); err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Capsule) {
		return nil, err // Get stores what is in a directory
	}
	kept, err := r.kept(name)
	if err == nil && len(kept) == 0 {
		err = fault.New(fault.NotFound, "no version of the unit %s is kept", fault.Quote(name)).
			WithHint("`aod units` lists the units")
	}
	return kept, err
}

// kept reads the records of a unit's versions. What is damaged is left out.
func (r *Registry) kept(name string) ([]Stored, error) {
	versions, err := r.home.versions(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	current, _ := r.home.current(name) // "" of a unit that was removed
	var kept []Stored
	for _, version := range versions {
		if rec, err := r.home.record(name, version); err == nil {
			kept = append(kept, Stored{
				Version: version, Source: rec.Source, Origin: rec.Origin, By: rec.By, Team: rec.team(),
				Since: rec.Since, Current: version == current,
			})
		}
	}
	slices.SortFunc(kept, func(a, b Stored) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Version, b.Version))
	})
	return kept, nil
}

// Rollback makes a kept version of an uploaded unit its current one, also of one that was
// removed. It is held against Options.Accept as an upload is. The error is NotFound for a
// version that isn't kept, Conflict if a directory has the name.
func (r *Registry) Rollback(ctx context.Context, name, version string) (*unit.Unit, error) {
	if err := r.mayPut(ctx, name); err != nil {
		return nil, err
	}
	if err := r.mayRollback(ctx, name, version); err != nil {
		return nil, err
	}
	leave, err := r.writing.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	defer leave()
	return r.setBack(name, version)
}

// mayRollback holds a version against Options.Accept, as the upload that it will be.
func (r *Registry) mayRollback(ctx context.Context, name, version string) error {
	rec, err := r.home.record(name, version)
	if err != nil || r.accept == nil {
		return notKept(err)
	}
	rec.Source, rec.Origin = unit.FromUpload, ""
	of, err := r.load(rec, nil)
	if err != nil {
		return r.lost(name, version, err)
	}
	return r.accept(ctx, of.unit)
}

// setBack makes a version current, and an upload if it came from a directory that has gone.
func (r *Registry) setBack(name, version string) (*unit.Unit, error) {
	old, err := r.home.record(name, version)
	if err != nil {
		return nil, notKept(err)
	}
	u, err := r.open(name, version)
	if err != nil {
		return nil, err
	}
	again := record{Name: name, Digest: old.Digest, Source: unit.FromUpload, By: old.By, Team: old.Team}
	if u, err = r.relabel(u, old, again); err != nil {
		return nil, err
	}
	if err := r.home.setCurrent(name, old.Digest); err != nil {
		return nil, err
	}
	r.logger.Info("unit version", "unit", name, "version", version, "source", unit.FromUpload)
	return u, nil
}

func notKept(err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	return fault.Wrap(fault.NotFound, err, "this version of the unit isn't kept").
		WithHint("`aod units versions NAME` lists those that are; one that isn't can be uploaded again")
}

// Remove removes an uploaded unit: Get doesn't find it any more. Its versions are there until
// Prune removes those that nobody needs. The error is NotFound for a unit that isn't there,
// Conflict for one of a directory.
func (r *Registry) Remove(ctx context.Context, name string) error {
	if err := r.Removable(ctx, name); err != nil {
		return err
	}
	leave, err := r.writing.enter(ctx, name)
	if err != nil {
		return err
	}
	defer leave()
	err = os.Remove(filepath.Join(r.home.unit(name), currentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody else has removed it
	}
	if err = errors.Join(err, safefs.Sync(r.home.unit(name))); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the unit can't be removed")
	}
	r.logger.Info("unit removed", "unit", name)
	return nil
}

// Removable returns what Remove would refuse.
func (r *Registry) Removable(ctx context.Context, name string) error {
	here, found, err := r.find(ctx, name)
	if err != nil {
		return err
	}
	if len(here) > 0 && !r.isUpload(name) {
		return fault.New(fault.Conflict, "the unit %s is kept in a directory of the server, %s", name, here[0].path).
			WithHint("remove that directory; `aod units disable %s` refuses its runs and leaves it there", name)
	}
	version, err := r.home.current(name)
	if fault.Is(err, fault.NotFound) {
		return r.noUnit(name, found)
	}
	if rec, err := r.home.record(name, version); err == nil && rec.Source != unit.FromUpload {
		return r.noUnit(name, found) // its directory has gone
	}
	return nil // what is damaged can be removed, too
}

// versionDigits is how much of a digest names a version.
const versionDigits = 16

func versionOf(digest string) string { return digest[:versionDigits] }

func isVersion(s string) bool { return len(s) == versionDigits && isHex(s) }

func isDigest(s string) bool { return len(s) == 64 && isHex(s) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// Prune removes the versions that aren't needed, and returns how many it removed. A unit's
// current version is never removed, and of an uploaded unit that is still there the newest
// KeptUploads are kept, for Rollback. A version that Get returned and that is yet to be used
// must count as needed. Prune calls needed from its own goroutine, without any lock.
func (r *Registry) Prune(ctx context.Context, needed func(name, version string) bool) (removed int, err error) {
	for _, name := range r.home.names() {
		n, uerr := r.pruneUnit(ctx, name, needed)
		removed, err = removed+n, errors.Join(err, uerr)
	}
	return removed, err
}

func (r *Registry) pruneUnit(
	ctx context.Context, name string, needed func(name, version string) bool,
) (removed int, err error) {
	versions, err := r.home.versions(name)
	if err != nil {
		return 0, err
	}
	back := r.waysBack(name)
	for _, version := range versions {
		if back[version] || needed(name, version) {
			continue
		}
		gone, perr := r.pruneVersion(ctx, name, version)
		if gone {
			removed++
		}
		err = errors.Join(err, perr)
	}
	return removed, err
}

// waysBack returns the versions to which an uploaded unit may be set back later.
func (r *Registry) waysBack(name string) map[string]bool {
	if !r.isUpload(name) {
		return nil
	}
	kept, _ := r.kept(name) // what can't be read is no way back
	back := map[string]bool{}
	for _, v := range kept[:min(len(kept), KeptUploads)] {
		back[v.Version] = true
	}
	return back
}

func (r *Registry) pruneVersion(ctx context.Context, name, version string) (gone bool, err error) {
	leave, err := r.writing.enter(ctx, name)
	if err != nil {
		return false, err
	}
	defer leave()
	current, err := r.home.current(name)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	if err != nil || current == version {
		return false, err // a damaged current file doesn't say which version to keep
	}
	err = r.discard(name, version)
	_ = os.Remove(r.home.unit(name)) // fails unless it is empty
	return err == nil, err
}
