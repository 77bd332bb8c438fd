package orchestrator

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// UnitVersions lists the versions of a unit that are kept, the newest first.
func (s *Service) UnitVersions(ctx context.Context, name string) ([]api.UnitVersion, error) {
	kept, err := s.units.Versions(ctx, name)
	if err != nil {
		return nil, err
	}
	versions := make([]api.UnitVersion, 0, len(kept))
	for _, v := range kept {
		versions = append(versions, api.UnitVersion(v))
	}
	return versions, nil
}

// RollbackUnit makes a version that is kept the current one of an uploaded unit, after the
// checks of an upload. The error is NotFound for a version that isn't kept, Conflict for a unit
// of a directory.
func (s *Service) RollbackUnit(ctx context.Context, name, version string) (api.Unit, error) {
	if err := s.admits(ctx); err != nil {
		return api.Unit{}, err
	}
	u, err := s.units.Rollback(ctx, name, version)
	if err != nil {
		return api.Unit{}, err
	}
	return s.withSchemas(u)
}

// RemoveUnit removes an uploaded unit: no new run gets it. While runs of it go on or wait, the
// error is a Conflict fault that names them; with force it isn't, and they go on to their end
// with the version that they have.
func (s *Service) RemoveUnit(ctx context.Context, name string, force bool) error {
	if err := s.admits(ctx); err != nil {
		return err
	}
	if err := s.units.Removable(ctx, name); err != nil {
		return err
	}
	if live := s.runsOf(name); len(live) > 0 && !force {
		return hasRuns(name, live)
	}
	return s.units.Remove(ctx, name)
}

// namedRuns is how many runs an error names.
const namedRuns = 5

func hasRuns(name string, ids []string) error {
	listed := strings.Join(ids[:min(len(ids), namedRuns)], ", ")
	if more := len(ids) - namedRuns; more > 0 {
		return fault.New(fault.Conflict, "the unit %s has runs that go on or wait: %s and %d more", name, listed, more).
			WithHint(hasRunsHint, name)
	}
	return fault.New(fault.Conflict, "the unit %s has runs that go on or wait: %s", name, listed).
		WithHint(hasRunsHint, name)
}

const hasRunsHint = "wait until they have ended, or cancel them; `aod units rm --force %s` hides it from new runs at " +
	"once and leaves those alone"

// runsOf returns the ids of a unit's runs that go on or wait, the oldest first.
func (l *loop) runsOf(name string) []string {
	var ids []string
	for _, j := range l.jobsOf(func(j *job) bool { return j.Unit.Name == name }) {
		ids = append(ids, j.ID)
	}
	slices.Sort(ids) // they begin with the time
	return ids
}
