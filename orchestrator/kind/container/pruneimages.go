package container

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

// asked is when this process was asked for images, by their references. An upload has its
// image before it is a unit.
type asked struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (a *asked) note(ref string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == nil {
		a.at = map[string]time.Time{}
	}
	a.at[ref] = time.Now()
}

// lately returns the references of the last while, and forgets the others.
func (a *asked) lately(while time.Duration) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var refs []string
	for ref, at := range a.at {
		if time.Since(at) > while {
			delete(a.at, ref)
			continue
		}
		refs = append(refs, ref)
	}
	return refs
}

// PruneImages implements run.ImagePruner. It removes images with the label of this home alone,
// and none that a container of anybody has.
func (c *Containers) PruneImages(ctx context.Context, units func() ([]*unit.Unit, error), dryRun bool) (removed int, err error) {
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
	for _, ref := range append(c.asked.lately(c.builds.opts.Settle), c.builds.references()...) { // before the units are asked for
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
		c.images.forgetRef(name)
	}
	return true
}
