package orchestrator

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Cancel requests the cancellation of a run. The request is stored before it is acted on.
// If the run has its outcome already, the error is a Conflict fault.
func (l *loop) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	record, err := l.Get(ctx, id)
	if err != nil {
		return api.Record{}, err
	}
	j := l.job(id)
	if record.Outcome != "" || j == nil {
		return record, fault.New(fault.Conflict, "the run has ended: it is %s", record.State)
	}
	reason = run.Bounded(j.Masked(reason), run.MaxMessage)
	request := newEvent(time.Now().UTC(), api.CancelEvent{Reason: reason})
	if err := l.journal.Append(ctx, id, request); err != nil {
		return api.Record{}, err
	}
	j.news.Notify()
	j.cancel(run.Cancelled(reason))
	return l.Get(ctx, id)
}

// Cancel is the loop's, but for a damaged store: then no run has a job here, and none is known
// to have ended.
func (s *Service) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	if err := s.undamaged(ctx); err != nil {
		return api.Record{}, err
	}
	return s.loop.Cancel(ctx, id, reason)
}

// undamaged returns the fault that says how the store is damaged, or nil.
func (s *Service) undamaged(ctx context.Context) error {
	if !s.store.Damaged() {
		return nil
	}
	return s.store.Health(ctx)
}
