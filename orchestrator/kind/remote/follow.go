package remote

import (
	"context"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
)

// How long an errand waits before it asks again how its task stands, and for an agent that doesn't answer.
const (
	firstWait = 200 * time.Millisecond
	longWait  = 5 * time.Second
	patience  = 2 * time.Minute
)

// follow hears of the task by a stream, if the agent has them, and then asks how it stands.
func (e *errand) follow(ctx context.Context) error {
	if e.kept.Streams && e.task.State != "" { // else it was never asked how the task stands
		_, err := e.agent.Subscribe(ctx, e.task, e.hear)
		switch {
		case err != nil && !isLost(err) && !a2apeer.IsReason(err, "UNSUPPORTED_OPERATION") &&
			!a2apeer.IsReason(err, "TASK_NOT_FOUND"):
			return err
		case e.task.State.Over() || e.task.State.Asks():
			return nil
		}
	}
	return e.look(ctx)
}

// look asks the agent how the task stands, after a while. An agent that doesn't answer is asked again.
func (e *errand) look(ctx context.Context) error {
	if cause := pause.For(ctx, e.wait); cause != nil {
		return cause
	}
	e.wait = min(max(2*e.wait, firstWait), longWait)
	before := e.task.Mark
	task, err := e.agent.Get(ctx, e.kept.Task)
	switch {
	case err == nil && task.Mark != before:
		e.wait = firstWait
		return e.hear(task)
	case err == nil:
		return e.hear(task)
	case isLost(err) && time.Since(e.heardAt) < patience:
		return nil
	}
	return err
}

// isLost reports whether an error may pass: the agent has the task and doesn't answer, or is busy.
func isLost(err error) bool {
	var broken *a2apeer.Violation
	if errors.As(err, &broken) {
		return false
	}
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Deadline) || fault.Is(err, fault.Busy)
}
