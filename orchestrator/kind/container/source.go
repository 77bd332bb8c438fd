package container

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// source starts the sandboxes of the pool.
type source struct {
	machine *machine
	starter *starter
	images  *imageBuilder
	trials  *trials
}

// canWait reports whether a unit's sandboxes can be started before their runs are known. Under
// an isolation runtime they can't: the init may be unable to reach AOD. Nor can those of a unit
// with sessions: each has its session's home.
func canWait(u *unit.Unit) bool {
	_, err := capsuleOf(u)
	return err == nil && talker(u) == nil && u.Kind != unit.MCP && u.Policy.Isolation == "" && u.Policy.Refusal == nil
}

// Wants implements pool.Source.
func (s source) Wants(u *unit.Unit) int {
	if !canWait(u) {
		return 0
	}
	return u.Policy.Warm
}

// Start implements pool.Source.
func (s source) Start(ctx context.Context, u *unit.Unit, id string, loaded bool) (*pool.Sandbox, error) {
	r := &run.Run{ID: id, Unit: u}
	r.LedBy(noHost{}, nil)
	image, err := s.readyImage(ctx, r)
	if err != nil {
		return nil, err
	}
	waiting := pool.NewSandbox(id, pool.Key(u), loaded)
	waiting.Image, waiting.Runs = r.Record.Image, runsOf(u, image, loaded)
	waiting.Spec = s.starter.spec(u, id, image)
	waiting.Spec.Limits = programOf(u).limits(run.Request{Unit: u}.Limits(s.machine.opts.Limits))
	waiting.Spec.Durable = true
	if !loaded {
		waiting.Spec.Mode = runtime.ModeParked
	}
	if err := programOf(u).completeWarmSpec(s.machine, u, &waiting.Spec); err != nil {
		return nil, err
	}
	if waiting.Layout, err = s.starter.newLayout(filepath.Join(s.machine.poolDir(), id), image, ""); err != nil {
		return nil, errors.Join(err, safefs.RemoveTree(waiting.Layout.Dir))
	}
	return waiting, waiting.Start(ctx, s.machine.life, s.starter.start, s.machine.logger)
}

// readyImage returns the image of the unit if there is one. It has a missing one built beside
// the pool, which goes on with other units.
func (s source) readyImage(ctx context.Context, r *run.Run) (runtime.Image, error) {
	if _, known := s.images.known.Load(pool.Key(r.Unit)); known {
		return s.images.ensure(ctx, r)
	}
	recipe, err := s.images.recipeOf(r.Unit)
	if err != nil {
		return runtime.Image{}, err
	}
	if _, err := s.machine.engine.Image(ctx, recipe.Tag()); !fault.Is(err, fault.NotFound) {
		return s.images.ensure(ctx, r)
	}
	s.buildAhead(r.Unit, recipe)
	return runtime.Image{}, pool.ErrBuilding
}

// buildAhead has an image built for which no run waits, until the kind is closed.
func (s source) buildAhead(u *unit.Unit, recipe runtime.Recipe) {
	if slices.Contains(s.images.builds.references(), recipe.Tag()) {
		return
	}
	s.images.builds.tasks.Go(func() {
		_, err := s.images.buildMissing(s.machine.life, u, recipe, func(runtime.BuildEvent) {})
		switch {
		case err == nil:
			s.trials.findAhead(s.machine.life, u)
		case s.machine.life.Err() == nil:
			s.machine.logger.Warn("no image for sandboxes to wait in", "unit", u.Name, "kind", fault.KindOf(err).
				String(), fault.LogAttr(err))
		}
	})
}

// Remove implements pool.Source.
func (s source) Remove(ctx context.Context, id string) error { return s.machine.sweepRun(ctx, id) }

// runsOf returns how many runs a warm sandbox may serve. It is one if the image has volumes,
// since those are not emptied between runs.
func runsOf(u *unit.Unit, image runtime.Image, loaded bool) int {
	if !loaded || len(image.Volumes) > 0 {
		return 1
	}
	return max(u.Policy.Reuse, 1)
}
