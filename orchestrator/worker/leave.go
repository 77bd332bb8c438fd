package worker

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

const (
	leaveTime = 2500 * time.Millisecond // to ask what an end means; the server asks its Swarm for 2 seconds
	emptyLook = 200 * time.Millisecond  // between two looks whether nothing is held any more
)

// awaitEnd has the worker end when it is told to. A Swarm tells that for a drain and for an update: at a drain the
// worker finishes what runs, for no process comes after this one.
func (w *Worker) awaitEnd(ctx, told context.Context, stop context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-told.Done():
	}
	defer stop(context.Cause(told))
	if !w.mayLeave(ctx) {
		return
	}
	w.leaving.Store(true)
	w.renewOnce(ctx)
	w.logger.Info("the node is to be emptied: runs end first", "runs", len(w.all()))
	for len(w.all()) > 0 && pause.For(ctx, emptyLook) == nil {
	}
}

// mayLeave asks the server whether this worker's node is to be emptied. Without an answer it isn't.
func (w *Worker) mayLeave(ctx context.Context) bool {
	if w.opts.Node == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	var answer wire.Leaving
	if err := w.link.call(ctx, wire.Leave, wire.Held{}, &answer); err != nil {
		w.logger.Info("the server doesn't tell why this process is to end: the next one goes on", fault.LogAttr(err))
		return false
	}
	return answer.Finish
}
