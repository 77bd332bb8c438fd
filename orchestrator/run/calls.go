package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
)

// ChildRuns are the runs that one attempt asks for. A kind offers them to its program by the
// capsule API, or asks for them itself.
type ChildRuns interface {
	handoff.Runs
	// Keys are those of the calls that an earlier process took from the same attempt.
	Keys() []string
	// Mounts are the addresses of models in the capsule API, and of further protocols.
	Mounts() []capsuleapi.Mount
	// Lend gives the run's slot to others while wait is called.
	Lend(ctx context.Context, wait func())
	// CancelAll ends the calls that go on. It doesn't wait for that.
	CancelAll(cause error)
	// End is called when the attempt is over: after it nothing of its calls goes on, unless
	// they outlive this process as the caller does.
	End(cause error)
}

// Caller describes the run to a broker, as one that has no directories. Its calls end at the
// deadline.
func (r *Run) Caller(deadline time.Time) handoff.Caller {
	return handoff.Caller{
		Run: r.ID, Root: r.Lineage.Root, Parent: r.Lineage.Parent, Unit: r.Record.Unit,
		Path: r.Lineage.Path, Tree: r.Lineage.Tree, Deadline: deadline, Grants: r.Grants, Tools: r.Unit.Tools(),
		Input: r.Input.Payload.JSON(),
	}
}

// Broker returns the broker of an attempt that calls without a sandbox, within the time of
// its unit. A nil logger drops what it gets.
func (r *Run) Broker(calls ChildRuns, logger *slog.Logger) *handoff.Broker {
	broker := handoff.NewBroker(r.Caller(r.Deadline(r.Limits.Timeout)), calls, r.Handoffs, logger)
	broker.Remember(calls.Keys()...)
	return broker
}
