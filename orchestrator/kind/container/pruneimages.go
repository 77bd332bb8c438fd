package container

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

// PruneImages implements run.ImagePruner. It removes images with the label of this home alone,
// and none that a container of anybody has.
func (c *Containers) PruneImages(
	ctx context.Context, units func() ([]*unit.Unit, error), dryRun bool,
) (removed int, err error) {
	if c.home.Owner == "" {
		return 0, nil // whose every image would be
	}
	ours, err := c.engine.ImagesByLabel(ctx, map[string]string{labelBuiltFor: c.home.Owner})
	if err != nil || len(ours) == 0 {
		return 0, err
	}
	needed, err := c.neededImages(units)
	if err != nil {
		return 0, err
	}
	for _, image := range ours {
		if !isNeeded(image, needed) && (dryRun || c.removeImage(ctx, image)) {
			removed++
		}
	}
	return removed, ctx.Err()
}

// neededImages returns the references of what units, waiting sandboxes and builds need.
func (c *Containers) neededImages(units func() ([]*unit.Unit, error)) (map[string]bool, error) {
	needed := map[string]bool{}
	for ref, at := range c.asked.Range { // before the units are asked for
		if time.Since(at.(time.Time)) > c.builds.opts.Settle {
			c.asked.CompareAndDelete(ref, at)
			continue
		}
		needed[ref.(string)] = true
	}
	for _, ref := range c.builds.references() {
		needed[ref] = true
	}
	for _, waiting := range c.pool.Waiting() {
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
		recipe, err := c.recipeOf(u)
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

// removeImage removes an image with its tags, and reports whether it is gone. The engine keeps
// one that a container has.
func (c *Containers) removeImage(ctx context.Context, image runtime.Image) bool {
	names := image.Tags
	if len(names) == 0 {
		names = []string{image.ID}
	}
	for _, name := range names {
		if err := c.engine.RemoveImage(ctx, name); err != nil {
			c.logger.Warn("image not removed", "image", name, fault.LogAttr(err))
			return false
		}
		for key, found := range c.images.Range {
			if found.(foundImage).ref == name {
				c.images.Delete(key)
			}
		}
	}
	return true
}
