package container

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/runtime"
)

// imagePruner removes images that nothing needs any more.
type imagePruner struct {
	machine *machine
	images  *imageBuilder
	pool    *pool.Pool
}

// prune removes images with the label of this home alone,
// and none that a container of anybody has.
func (p imagePruner) prune(
	ctx context.Context, units func() ([]*unit.Unit, error), dryRun bool,
) (removed int, err error) {
	if p.machine.home.Owner == "" {
		return 0, nil // whose every image would be
	}
	ours, err := p.machine.engine.ImagesByLabel(ctx, map[string]string{labelBuiltFor: p.machine.home.Owner})
	if err != nil || len(ours) == 0 {
		return 0, err
	}
	needed, err := p.needed(units)
	if err != nil {
		return 0, err
	}
	for _, image := range ours {
		if !isNeeded(image, needed) && (dryRun || p.images.remove(ctx, image)) {
			removed++
		}
	}
	return removed, ctx.Err()
}

// needed returns the references of what units, waiting sandboxes and builds need.
func (p imagePruner) needed(units func() ([]*unit.Unit, error)) (map[string]bool, error) {
	needed := map[string]bool{}
	for ref, at := range p.images.asked.Range { // before the units are asked for
		if time.Since(at.(time.Time)) > p.images.builds.opts.Settle {
			p.images.asked.CompareAndDelete(ref, at)
			continue
		}
		needed[ref.(string)] = true
	}
	for _, ref := range p.images.builds.references() {
		needed[ref] = true
	}
	for _, waiting := range p.pool.Waiting() {
		needed[waiting.Image.Ref] = true
	}
	all, err := units()
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if _, err := capsuleOf(u); err != nil {
			continue // it has no image
		}
		recipe, err := p.images.recipeOf(u)
		if err != nil {
			return nil, fmt.Errorf("images of %s: %w", u.Name, err)
		}
		needed[recipe.Tag()] = true
	}
	return needed, nil
}

func isNeeded(image runtime.Image, needed map[string]bool) bool {
	return slices.ContainsFunc(image.Tags, func(tag string) bool {
		return needed[tag] || !strings.HasPrefix(tag, capsuleRepository)
	})
}
