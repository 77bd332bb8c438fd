package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/runtime"
)

// Sweep removes what dead processes left behind: runs whose lock nobody holds, with
// their containers. It asks the engine nothing when there are none. It returns the
// ids of the runs that are gone now; what could not be removed stays for the next
// sweep.
func (o *Orchestrator) Sweep(ctx context.Context) ([]string, error) {
	orphans, err := o.data.orphans()
	if err != nil {
		return nil, err
	}
	var swept []string
	var failures []error
	for _, orphan := range orphans {
		if err := o.sweep(ctx, orphan); err != nil {
			failures = append(failures, fmt.Errorf("sweep run %s: %w", orphan.id, err))
			continue
		}
		o.logger.Warn("removed what a dead process left", "run", orphan.id)
		swept = append(swept, orphan.id)
	}
	return swept, errors.Join(failures...)
}

// sweep removes the containers first: the directory is what tells of them. One that is
// empty is of a run that never had any, and the engine isn't asked.
func (o *Orchestrator) sweep(ctx context.Context, orphan orphan) (err error) {
	defer func() { err = errors.Join(err, orphan.dir.release()) }()
	if orphan.dir.isEmpty() {
		return orphan.dir.remove()
	}
	if err := runtime.RemoveAll(ctx, o.engine, orphan.id, o.owner); err != nil {
		return err
	}
	return orphan.dir.remove()
}
