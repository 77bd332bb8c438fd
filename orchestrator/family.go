package orchestrator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
)

// family is a run's place in the tree of calls.
type family struct {
	parent   string
	root     string
	path     []handoff.Step // from the root to the run, which is the last
	deadline time.Time      // of its caller; zero: none
	tree     *handoff.Tree
}

// newFamily is that of a run which nobody calls.
func newFamily(id string, c *capsule.Capsule) family {
	return family{root: id, path: []handoff.Step{stepOf(id, c)}, tree: handoff.NewTree()}
}

// child is the place of a run that this one calls.
func (f family) child(id string, c *capsule.Capsule, deadline time.Time) family {
	path := append(slices.Clone(f.path), stepOf(id, c))
	return family{parent: f.self(), root: f.root, path: path, deadline: deadline, tree: f.tree}
}

func (f family) self() string { return f.path[len(f.path)-1].Run }

func stepOf(id string, c *capsule.Capsule) handoff.Step {
	return handoff.Step{Run: id, Unit: c.Name, Budgets: c.Agent.Budgets, Recursion: c.Agent.Recursion}
}

// errDeadline is the cause of a run's end when its caller's time is up.
var errDeadline = errors.New("its caller's time is up")

// bound ends a run's context with its caller's time.
func (f family) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, f.deadline, errDeadline)
}

// grants are the units that a capsule's tools.yaml lets it call.
func grants(c *capsule.Capsule) []string {
	var names []string
	for _, tool := range c.Tools {
		if tool.Capsule != "" {
			names = append(names, tool.Capsule)
		}
	}
	return names
}

// earlier returns the sooner of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
