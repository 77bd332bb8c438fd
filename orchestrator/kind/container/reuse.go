package container

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// lastLineTime is how long the end of a run's log may take to come, askTime how long its
	// program may take until it asks for another run.
	lastLineTime = 2 * time.Second
	askTime      = 5 * time.Second
	// reusePoll is how often somebody looks meanwhile.
	reusePoll = 2 * time.Millisecond
)

// Settle implements run.Execution. A sandbox that may serve another run waits for that
// afterwards: it is given back when that is stored.
func (x *execution) Settle(ctx context.Context) {
	a := x.attempt
	if a == nil {
		return
	}
	switch a.ending {
	case reported:
		a.settle(context.WithoutCancel(ctx))
	case posted:
		x.settlePosted(ctx)
	}
}

func (x *execution) settlePosted(ctx context.Context) {
	a := x.attempt
	over := a.log.ShareEnded()
	whole := a.waitFor(ctx, lastLineTime, func() bool { return closed(over) })
	a.noteLog()
	if !whole || a.shared == nil || x.Record.Outcome != api.Success {
		return
	}
	if err := x.renew(ctx); err != nil {
		x.containers.logger.Warn("container not used again", "run", x.ID, "container", a.sandbox.ID(), fault.LogAttr(err))
		return
	}
	x.released = a.shared
}

// waitFor reports whether something comes to be so in time, while the sandbox lives and
// this process goes on.
func (a *attempt) waitFor(ctx context.Context, patience time.Duration, is func() bool) bool {
	tick := time.NewTicker(reusePoll)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); {
		if !a.sandbox.Running() || time.Now().After(end) {
			return false
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// renew makes the run's sandbox as new, when its program waits for another run and does
// nothing else any more. After an error it has to be discarded.
func (x *execution) renew(ctx context.Context) error {
	s := x.attempt.shared
	if !x.attempt.waitFor(ctx, askTime, s.Ready) {
		return pool.ErrNotReady
	}
	if err := s.Layout.Reset(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	home := runtime.OpenLayout(filepath.Join(x.containers.poolDir(), s.ID), "")
	if err := os.Rename(s.Layout.Dir, home.Dir); err != nil {
		return run.StorageFault(err)
	}
	s.Layout = home
	s.Runtime.Assign(home)
	s.Lines.Hold()
	s.Since = time.Now()
	delete(x.saved.Sandboxes, x.Run.Attempt) // as soon as that is stored, the sandbox may be another run's
	return nil
}

// giveBack puts a sandbox that waits again where the next run finds it. It reports whether
// there was one.
func (x *execution) giveBack(ctx context.Context) bool {
	s := x.released
	if s == nil {
		return false
	}
	x.attempt, x.released = nil, nil
	if !x.containers.pool.Release(x.Unit.Name, s) {
		x.containers.pool.Discard(ctx, s)
		x.containers.pool.Forget(s.ID)
	}
	return true
}
