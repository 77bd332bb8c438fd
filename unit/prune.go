package unit

import (
	"context"
	"errors"
	"os"

	"github.com/agent-on-demand/aod/fault"
)

// Prune removes the versions that nobody needs, and returns how many those were. A
// unit's current version is never removed. What Get returned and is yet to be used must
// count as needed; needed is called without any lock, from the calling goroutine.
func (r *Registry) Prune(ctx context.Context, needed func(name, version string) bool) (removed int, err error) {
	for _, name := range r.home.names() {
		n, uerr := r.pruneUnit(ctx, name, needed)
		removed, err = removed+n, errors.Join(err, uerr)
	}
	return removed, err
}

func (r *Registry) pruneUnit(ctx context.Context, name string, needed func(name, version string) bool) (removed int, err error) {
	versions, err := r.home.versions(name)
	if err != nil {
		return 0, err
	}
	for _, version := range versions {
		if needed(name, version) {
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

func (r *Registry) pruneVersion(ctx context.Context, name, version string) (gone bool, err error) {
	gate := r.writing.of(name)
	if err := gate.enter(ctx); err != nil {
		return false, err
	}
	defer gate.leave()
	current, err := r.home.current(name)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	if err != nil || current == version {
		return false, err // a damaged one can't say which to spare
	}
	err = r.discard(name, version)
	_ = os.Remove(r.home.unit(name)) // refused unless it is empty
	return err == nil, err
}
