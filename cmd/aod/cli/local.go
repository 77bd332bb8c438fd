package cli

import (
	"context"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Local runs units on this machine for a command.
type Local struct {
	Runs       *orchestrator.Local
	Kinds      run.Kinds
	Containers *container.Containers
	Engine     runtime.Engine
}

// LocalOptions are what a command gives the runs of its units.
type LocalOptions struct {
	Secrets map[string]string // paths of files, by name
	Models  models.Models

	Upstreams string   // a file of them; "": that of the environment
	Asks      []string // of them, whose keys have to be there
	Find      Finder   // of the units that these call; nil: they call none

	AtOnce int // runs; 0: twice the number of processors
}

// Finder returns the unit with a name that a run may call, or a NotFound fault.
type Finder func(context.Context, string) (*unit.Unit, error)

// WithLocal calls do with a runner of units on the local engine, after removing the remains
// of dead processes.
func WithLocal(ctx context.Context, env *Env, do func(*Local) error) (err error) {
	return env.Local(LocalOptions{}, func(l *Local) error {
		if err := sweep(ctx, env, l); err != nil {
			return err
		}
		return do(l)
	})
}

// WithUnit is WithLocal for runs of a unit. If its kind leaves no remains elsewhere, the
// engine need not answer: remains of dead processes are then removed if possible.
func WithUnit(ctx context.Context, env *Env, u *unit.Unit, opts LocalOptions, do func(*Local) error) error {
	opts.Asks = u.Policy.Upstreams
	sayReaches(env, u, opts.Find)
	return env.Local(opts, func(l *Local) error {
		if err := sweepFor(ctx, env, l, u); err != nil {
			return err
		}
		return do(l)
	})
}

// sweepTime is how long a unit that needs no engine waits for one.
const sweepTime = 3 * time.Second

func sweepFor(ctx context.Context, env *Env, l *Local, u *unit.Unit) error {
	kind, err := l.Kinds.Of(u)
	if err != nil {
		return err
	}
	if _, sweeps := kind.(run.Sweeper); sweeps {
		return sweep(ctx, env, l)
	}
	brief, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	_ = sweep(brief, env, l) // the next command that needs an engine reports the error
	return ctx.Err()
}

// sweep removes the remains of dead processes.
func sweep(ctx context.Context, env *Env, l *Local) error {
	swept, err := l.Runs.Sweep(ctx)
	for _, id := range swept {
		env.Note("cleaned up after run %s, whose process had died", id)
	}
	return err
}

// sayReaches prints which hosts a unit, and what it may call, may reach by name.
func sayReaches(env *Env, u *unit.Unit, find Finder) {
	units, _ := Reachable(u, find)
	for _, u := range units {
		if len(u.Policy.Egress) > 0 {
			env.Note("%s may reach %s", ui.Printable(u.Name), strings.Join(u.Policy.Egress.Strings(), ", "))
		}
	}
}

// Reachable returns a unit with all that it may call, directly or not; a nil find finds none. whole is false where
// one of them can't be had: its call says why.
func Reachable(u *unit.Unit, find Finder) (units []*unit.Unit, whole bool) {
	units, whole = []*unit.Unit{u}, true
	seen := map[string]bool{u.Name: true}
	for i := 0; find != nil && i < len(units); i++ {
		for _, name := range units[i].Policy.Grants {
			if seen[name] {
				continue
			}
			seen[name] = true
			callee, err := find(context.Background(), name)
			if err != nil {
				whole = false
				continue
			}
			units = append(units, callee)
		}
	}
	return units, whole
}
