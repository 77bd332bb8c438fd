package flow

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// execution implements run.Execution by a walk through a graph. There is one attempt: nodes
// have tries of their own.
type execution struct {
	*run.Run
	run.Bare
	pins   *pins
	logger *slog.Logger
}

// Callee implements run.Pinner.
func (x *execution) Callee(ctx context.Context, name string) (*unit.Unit, error) {
	return x.pins.callee(ctx, name)
}

// Pinned implements run.Pinner.
func (x *execution) Pinned() map[string]string { return x.pins.pinned() }

// Attempt implements run.Execution.
func (x *execution) Attempt(ctx context.Context) (run.Result, error) {
	if wrong, err := x.check(ctx); wrong != nil || err != nil {
		return *cmp.Or(wrong, &run.Result{}), err
	}
	if err := x.Enter(api.Starting, ""); err != nil {
		return run.Result{}, err
	}
	began := time.Now().UTC()
	x.Record.StartedAt = &began
	if err := x.Enter(api.Running, ""); err != nil {
		return run.Result{}, err
	}
	return x.walk(ctx)
}

// Resume implements run.Execution: the walk goes on where the kept steps end. Calls that were
// made are joined.
func (x *execution) Resume(ctx context.Context) (run.Result, error) {
	if x.State() != api.Running || x.Record.StartedAt == nil {
		return x.Attempt(ctx)
	}
	if asked := x.CancelRequest(); asked != nil {
		return run.Stopped(nil, asked), nil
	}
	return x.walk(ctx)
}

// walk goes through the graph within the time of the run. It returns an error only when this
// process has to stop, or can't do its work, and where nothing is to be done before a person has
// answered.
func (x *execution) walk(ctx context.Context) (run.Result, error) {
	graph, err := graphOf(x.Unit)
	if err != nil {
		return run.Result{}, err
	}
	limited, stop := x.within(ctx)
	defer stop()
	h := x.newHost()
	ended, err := h.walk(limited, graph)
	var asks *run.Suspended
	if errors.As(err, &asks) {
		return run.Result{}, asks // nothing goes on beside it
	}
	h.calls.End(causeOf(limited))
	if err != nil {
		return x.broken(limited, err)
	}
	x.Record.Timings.Run = run.Milliseconds(time.Since(*x.Record.StartedAt))
	x.Record.Flow = &api.FlowCounts{Action: ended.Action}
	return x.result(limited, h.files, ended)
}

// causeOf is why calls that go on have to end.
func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return run.ErrCallerEnded
}

// within returns a context that ends with the time of the run, which began in the process that
// began it, and with the admission of this process: whatever waits goes on in the next one.
func (x *execution) within(ctx context.Context) (context.Context, context.CancelFunc) {
	waiting, stop := x.Waiting(ctx)
	limited, cancel := context.WithDeadlineCause(waiting, x.Record.StartedAt.Add(x.Limits.Timeout), run.ErrTimeout)
	return limited, func() {
		cancel()
		stop()
	}
}

// timeUp is why the walk ends where its broker learns before its context that the time is up:
// both have the same deadline.
func (x *execution) timeUp() error {
	own, caller := x.Record.StartedAt.Add(x.Limits.Timeout), x.Lineage.Deadline
	if !caller.IsZero() && caller.Before(own) {
		return run.ErrDeadline
	}
	return run.ErrTimeout
}

// broken is the result of a walk that had to stop.
func (x *execution) broken(ctx context.Context, err error) (run.Result, error) {
	cause := context.Cause(ctx)
	if cause == nil && (errors.Is(err, run.ErrTimeout) || errors.Is(err, run.ErrDeadline)) {
		cause = err
	}
	switch {
	case errors.Is(err, runtime.ErrDetach), errors.Is(cause, runtime.ErrDetach):
		return run.Result{}, runtime.ErrDetach
	case errors.Is(cause, run.ErrTimeout):
		return run.TimedOut(nil, x.Limits.Timeout), nil
	case cause != nil:
		return run.Stopped(nil, cause), nil
	}
	return run.Result{}, err
}

// walk has the graph walked, over the steps of earlier walks.
func (h *host) walk(ctx context.Context, graph *flow.Flow) (flow.Ended, error) {
	input, err := h.input()
	if err != nil {
		return flow.Ended{}, err
	}
	kept, err := h.Steps(ctx)
	if err != nil {
		return flow.Ended{}, err
	}
	return graph.Walk(ctx, input, kept, h.rehearsed())
}
