package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

// checkTriggers returns a fault if a base image of the unit makes the build fetch what the unit's
// policy doesn't allow (ONBUILD). The builder would pull a missing base image: it is pulled
// before that, to be looked at.
func (c *Containers) checkTriggers(ctx context.Context, u *unit.Unit, dir *capsule.Capsule) error {
	if !u.Policy.Bounds.NoFetch {
		return nil
	}
	for _, name := range dir.Bases() {
		base, err := c.engine.Image(ctx, name)
		if fault.Is(err, fault.NotFound) && !dir.IsStage(name) && c.engine.Pull(ctx, name) == nil {
			base, err = c.engine.Image(ctx, name)
		}
		if errors.Is(err, runtime.ErrUnreachable) {
			return err
		}
		if err != nil {
			continue // the builder says what is wrong with it
		}
		for _, trigger := range base.OnBuild {
			if found := capsule.TriggerFetches(trigger); found != "" {
				return u.RefuseFetch(fmt.Sprintf("that its base image %s fetches from elsewhere: ONBUILD %s", name,
					found))
			}
		}
	}
	return nil
}
