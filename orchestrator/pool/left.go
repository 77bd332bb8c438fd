package pool

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// lateTime is how long the engine may still carry out a request that it didn't answer, such
// as the creation of a container.
const lateTime = 30 * time.Second

// mayBeLeft reports whether the engine may still have something of a sandbox after an error.
func mayBeLeft(err error) bool {
	return errors.Is(err, runtime.ErrLeftBehind) || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Deadline)
}

// rememberLeft remembers a sandbox that has to be removed as soon as the engine can.
func (p *Pool) rememberLeft(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left[id] = time.Now()
}

// sweepLeft removes what was left behind, by its labels. It looks again for what the engine
// may create late.
func (p *Pool) sweepLeft(ctx context.Context) {
	p.mu.Lock()
	left := maps.Clone(p.left)
	p.mu.Unlock()
	for id, since := range left {
		if p.source.Remove(ctx, id) != nil {
			return // nor will the others be
		}
		if time.Since(since) > lateTime {
			p.mu.Lock()
			delete(p.left, id)
			p.mu.Unlock()
		}
	}
}
