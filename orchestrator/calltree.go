package orchestrator

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/records"
)

// cancelCalls cancels all runs that a run has called, and returns their jobs.
func (l *loop) cancelCalls(caller string, cause error) []*job {
	calls := l.jobs.calledBy(caller)
	for _, call := range calls {
		call.cancel(cause)
	}
	return calls
}

// endCalls cancels all runs that a run has called. It returns when each has its outcome, or
// is left to the next process.
func (l *loop) endCalls(caller string, cause error) {
	for _, call := range l.cancelCalls(caller, cause) {
		select {
		case <-call.live.Outcome.Done():
		case <-call.live.Gone:
		}
	}
}

// tellCaller notes the end of a call among the events of the run that made it.
func (l *loop) tellCaller(j *job) {
	if caller := l.jobs.get(j.Lineage.Parent); caller != nil {
		caller.append(newEvent(time.Now().UTC(), records.CallOf(j.Record)))
	}
}

// noteCalls puts the calls of a run into its record, before the record is final.
func (j *job) noteCalls(ctx context.Context) {
	if j.loop.conducts(j.Unit) {
		j.noteSteps(ctx)
		return
	}
	if len(j.Grants) == 0 {
		return
	}
	calls, err := records.Calls(context.WithoutCancel(ctx), j.loop.journal.Runs, j.ID)
	if err != nil {
		j.loop.logger.Warn("calls not in the record", "run", j.ID, fault.LogAttr(err))
	}
	j.Record.Calls = calls
}

// Cancel requests the cancellation of a run. The request is stored before it is acted on.
// If the run has its outcome already, the error is a Conflict fault.
func (l *loop) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	record, err := l.runs.Get(ctx, id)
	if err != nil {
		return api.Record{}, err
	}
	j := l.jobs.get(id)
	if record.Outcome != "" || j == nil {
		return record, fault.New(fault.Conflict, "the run has ended: it is %s", record.State)
	}
	reason = run.Bounded(j.Masked(reason), run.MaxMessage)
	request := newEvent(time.Now().UTC(), api.CancelEvent{Reason: reason})
	if err := l.journal.Events.Append(store.Audit(ctx, j.audited("cancel", reason)), id, request); err != nil {
		return api.Record{}, err
	}
	j.live.News.Notify()
	j.cancel(run.Cancelled(reason))
	return l.runs.Get(ctx, id)
}
