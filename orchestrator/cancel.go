package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
)

// Cancel asks for the end of a run. The wish is stored before it is acted on. A run that
// has its outcome is a Conflict fault.
func (s *Service) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	record, err := s.Get(ctx, id)
	if err != nil {
		return api.Record{}, err
	}
	j := s.job(id)
	if record.Outcome != "" || j == nil {
		return record, fault.New(fault.Conflict, "the run has ended: it is %s", record.State)
	}
	reason = bounded(reason, maxMessage)
	wish := newEvent(time.Now().UTC(), api.CancelEvent{Reason: reason})
	if err := s.store.Append(ctx, id, wish); err != nil {
		return api.Record{}, err
	}
	j.news.notify()
	j.cancel(wishOf(reason))
	return s.Get(ctx, id)
}

// wishOf is the cause of a run's end that was asked for.
func wishOf(reason string) error {
	if reason == "" {
		return context.Canceled
	}
	return errors.New(reason)
}
