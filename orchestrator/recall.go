package orchestrator

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
)

// Recall implements handoff.Runs. Of several attempts the latest counts.
func (c *childRuns) Recall(ctx context.Context, call handoff.Call) (id string, err error) {
	for attempt := c.job.Attempt - 1; attempt > 0 && call.Key != ""; attempt-- {
		if id, err = c.recallFrom(ctx, attempt, call); err != nil || id != "" {
			return id, err
		}
	}
	return "", nil
}

// recallFrom is Recall for one attempt. A call that didn't succeed there binds nobody: it is
// made again, with whatever arguments.
func (c *childRuns) recallFrom(ctx context.Context, attempt int, call handoff.Call) (string, error) {
	key := c.keyIn(attempt, call)
	id, fingerprint, err := c.journal.ByKey(ctx, key.Value)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	record, err := c.Get(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && record.Outcome != api.Success {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if fingerprint != key.Fingerprint {
		return "", fault.New(fault.Input,
			"the flow took another way: in attempt %d this call had another target or other arguments", attempt).
			WithHint("a flow that is to go on after its container's death has to ask for the same again: no clock, " +
				"no chance and no order of threads in its arguments")
	}
	return id, nil
}
