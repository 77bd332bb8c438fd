package container

import (
	"errors"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

// buildLimits are what the build of a unit's image may reach and take. An upload is built by
// the classic builder where memory is bounded: BuildKit doesn't keep that.
func (c *Containers) buildLimits(u *unit.Unit) runtime.BuildLimits {
	limits := runtime.BuildLimits{MemoryBytes: c.opts.Builds.MemoryBytes, CPUs: c.opts.Builds.CPUs}
	if u.Policy.Bounds.NetworkOfBuilds() == unit.NoNetwork {
		limits.Network = unit.NoNetwork
	}
	limits.Classic = u.Source == unit.FromUpload && limits.MemoryBytes > 0
	return limits
}

// withoutNetwork explains the failure of a build that lacked the network, by what would give
// it one.
func withoutNetwork(u *unit.Unit, err error) error {
	if !errors.Is(err, runtime.ErrBuildNetwork) {
		return err
	}
	return fault.Wrap(fault.Build, err, "%s", fault.Public(err).Msg).
		WithHint("builds have no network here; the operator can allow it in the server's file: %s",
			u.Policy.Bounds.AllowingNetwork(u.Name))
}
