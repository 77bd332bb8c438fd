package container

import (
	"context"
	"os"
	"sync"

	"github.com/agent-on-demand/aod/runtime"
)

// users remembers whether the engine can give each sandbox a user of its own.
type users struct {
	mu    sync.Mutex
	asked bool
	maps  bool // it can't: the numbers don't exist in its containers
}

// uidOf returns the user id of a sandbox; 0 is the one that all share.
func (c *Containers) uidOf(ctx context.Context, id string) int {
	uid := c.opts.UIDs.Of(id)
	if uid == 0 || os.Geteuid() != 0 || runtime.IsRemote(c.engine) || c.mapsUsers(ctx) {
		return 0
	}
	return uid
}

// mapsUsers asks the engine once. Where that fails, the start that follows will say so.
func (c *Containers) mapsUsers(ctx context.Context) bool {
	c.users.mu.Lock()
	defer c.users.mu.Unlock()
	if c.users.asked {
		return c.users.maps
	}
	info, err := c.engine.Probe(ctx)
	if err != nil {
		return true
	}
	c.users.asked, c.users.maps = true, info.MapsUsers
	if info.MapsUsers {
		c.logger.Info("all sandboxes have the same user: the engine maps users")
	}
	return c.users.maps
}
