package container

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// askTime bounds the wait until the program asks for another run.
	askTime = 5 * time.Second
	// reusePoll is the interval of checks meanwhile.
	reusePoll = 2 * time.Millisecond
)

// Settle implements run.Execution. It prepares a sandbox that may serve another run; Remove
// gives it back to the pool.
func (x *execution) Settle(ctx context.Context) {
	a := x.attempt
	if a == nil {
		if x.uncertain && x.State() != api.Cleanup {
			x.readLastLines(ctx)
		}
		return
	}
	switch a.ending {
	case reported:
		x.containers.pool.AwaitLull(ctx)
		a.settle(ctx)
	case posted:
		x.settlePosted(ctx)
	}
}

func (x *execution) settlePosted(ctx context.Context) {
	a := x.attempt
	if !pause.Over(a.log.ShareEnded()) || a.shared == nil || x.Record.Outcome != api.Success {
		return
	}
	if err := x.reset(ctx); err != nil {
		x.containers.logger.Warn("container not used again", "run", x.ID, "container", a.sandbox.ID(),
			fault.LogAttr(err))
		return
	}
	x.released = a.shared
}

// Shares implements run.Sharer.
func (x *execution) Shares() bool {
	a := x.attempt
	return a != nil && a.ending == posted && a.shared != nil
}

// waitFor waits until is returns true, and reports whether it did. It gives up at the limit,
// when the sandbox has ended, or when ctx ends.
func (a *attempt) waitFor(ctx context.Context, limit time.Duration, is func() bool) bool {
	tick := time.NewTicker(reusePoll)
	defer tick.Stop()
	for end := time.Now().Add(limit); !is(); {
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

// reset removes everything of the run from its sandbox, once the program waits for another
// run. After an error the sandbox has to be discarded.
func (x *execution) reset(ctx context.Context) error {
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

// releaseSandbox gives a sandbox that waits again back to the pool. It reports whether it did.
func (x *execution) releaseSandbox(ctx context.Context) bool {
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
