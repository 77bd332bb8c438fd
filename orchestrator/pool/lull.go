package pool

import (
	"context"
	"time"
)

const (
	// lullTime is how long the end of a container waits for runs at the most, lullPoll how often
	// it looks.
	lullTime = 250 * time.Millisecond
	lullPoll = 5 * time.Millisecond
)

// AwaitLull returns when no run has a slot or waits for one, and after lullTime at the latest.
// The engine takes more of a processor for the end of a container than a short run does.
func (p *Pool) AwaitLull(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, lullTime)
	defer stop()
	tick := time.NewTicker(lullPoll)
	defer tick.Stop()
	for {
		if running, backlog := p.busy(); running == 0 && len(backlog) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
