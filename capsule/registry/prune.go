package registry

import (
	"context"
	"errors"
	"os"

	"github.com/agent-on-demand/aod/api/fault"
)

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
