package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
)

// Lineage is a run's place in the tree of calls.
type Lineage struct {
	Parent   string
	Root     string
	Path     []handoff.Step // from the root to the run, which is the last
	Deadline time.Time      // of its caller; zero: none
	Tree     *handoff.Tree
}

// NewLineage returns the lineage of a run that no other run calls.
func NewLineage(id string, u *unit.Unit) Lineage {
	return Lineage{Root: id, Path: []handoff.Step{stepOf(id, u)}, Tree: handoff.NewTree()}
}

// Child returns the lineage of a run that this one calls.
func (l Lineage) Child(id string, u *unit.Unit, deadline time.Time) Lineage {
	path := append(slices.Clone(l.Path), stepOf(id, u))
	return Lineage{Parent: l.self(), Root: l.Root, Path: path, Deadline: deadline, Tree: l.Tree}
}

func (l Lineage) self() string { return l.Path[len(l.Path)-1].Run }

func stepOf(id string, u *unit.Unit) handoff.Step {
	return handoff.Step{Run: id, Unit: u.Name, Budgets: u.Policy.Budgets, Recursion: u.Policy.Recursion}
}

// The causes of a run's end that its unit is not to blame for.
var (
	ErrTimeout     = errors.New("the run's time is up")
	ErrDeadline    = errors.New("its caller's time is up")
	ErrCallerEnded = errors.New("its caller has ended")
)

// Bound returns a context that ends at the caller's deadline, if there is one.
func (l Lineage) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, l.Deadline, ErrDeadline)
}

// Deadline returns when the attempt has to end: at its own limit, or at its caller's deadline
// if that is sooner. The time of a resumed attempt began in the earlier process.
func (r *Run) Deadline(limit time.Duration) time.Time {
	began := time.Now()
	if r.State() == api.Running && r.Record.StartedAt != nil {
		began = *r.Record.StartedAt
	}
	own := began.Add(limit)
	if caller := r.Lineage.Deadline; !caller.IsZero() && caller.Before(own) {
		return caller
	}
	return own
}

// NewID returns an id for a run: unique, and sorted by time (UUID version 7).
func NewID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("new run id: %w", err)
	}
	return id.String(), nil
}
