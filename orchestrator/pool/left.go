package pool

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// lateTime is what the engine has to do what it never answered: to create a container, say.
const lateTime = 30 * time.Second

// leaves reports whether the engine may still have something of a sandbox after an error.
func leaves(err error) bool {
	return errors.Is(err, runtime.ErrLeftBehind) || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Deadline)
}

// leave remembers a sandbox that is to be removed as soon as the engine does that.
func (p *Pool) leave(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left[id] = time.Now()
}

// sweep removes what was left behind, by its labels. What may come late is looked for again.
func (p *Pool) sweep(ctx context.Context) {
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
