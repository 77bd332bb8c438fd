package wire

import (
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/images"
)

// Images are the references of the images that a worker may fetch for a unit: those that its build names, and what
// aod/base is, which it may name.
func Images(u *unit.Unit) []string {
	c, is := u.Definition.(*capsule.Capsule)
	if !is {
		return nil
	}
	all := append([]string(nil), c.Images()...)
	if c.UsesBase() {
		all = append(all, images.BaseTag(), images.BaseLatest, images.BaseFrom)
	}
	return all
}
