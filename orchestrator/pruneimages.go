package orchestrator

import (
	"context"
	"errors"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// pruneImages removes the images that no unit and no live run needs, and returns how many they
// are.
func (s *Service) pruneImages(ctx context.Context, dryRun bool) (total int, err error) {
	for kind := range s.kinds.Each() {
		pruner, ok := kind.(run.ImagePruner)
		if !ok {
			continue
		}
		removed, failed := pruner.PruneImages(ctx, func() ([]*unit.Unit, error) { return s.unitsInUse(ctx) }, dryRun)
		total, err = total+removed, errors.Join(err, failed)
	}
	if total > 0 {
		s.logger.Info("images pruned", "count", total, "dry_run", dryRun)
	}
	return total, err
}

// unitsInUse returns the units that can be run, and those of live runs, in their versions.
func (s *Service) unitsInUse(ctx context.Context) ([]*unit.Unit, error) {
	var all []*unit.Unit
	// else it can't go on after a restart
	for _, j := range s.jobsOf(func(j *job) bool { return j.Unit.Definition != nil }) {
		all = append(all, j.Unit)
	}
	usable, err := s.usableUnits(ctx)
	return append(all, usable...), err
}
