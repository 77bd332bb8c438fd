package container

import (
	"context"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// Confined returns an Unsupported fault where NeedSeccomp is set and the engine has no seccomp. It
// asks the engine unless the last answer was good.
func (c *Containers) Confined(ctx context.Context) error {
	if !c.opts.NeedSeccomp || c.confined.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return c.Ready(ctx)
}

// confines is Confined for what the engine has just said.
func (c *Containers) confines(info runtime.EngineInfo) error {
	bad := c.opts.NeedSeccomp && !info.HasSeccomp()
	c.confined.Store(!bad)
	if bad {
		return fault.New(fault.Unsupported,
			"the engine at %s has no seccomp: programs in sandboxes could use every system call", info.Endpoint).
			WithHint("use an engine and a kernel with seccomp; allow_unconfined: true in the server's file serves " +
				"without it")
	}
	return nil
}
