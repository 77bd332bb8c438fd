package orchestrator

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Schedules has the schedules of the server, which start runs at their times.
func (s *Service) Schedules() *schedules.Scheduler { return s.schedules }

func (s *Service) newSchedules() *schedules.Scheduler {
	return schedules.New(schedules.Options{
		Host: scheduleHost{s}, Store: s.store, Dir: s.path(layout.Schedules), PayloadBytes: s.opts.PayloadBytes,
		Clock: s.opts.Clock, Logger: s.logger,
		Became: s.metrics.Occurred, Late: s.metrics.BegunLate,
	})
}

// scheduleHost implements schedules.Host.
type scheduleHost struct{ *Service }

// Admits implements schedules.Host.
func (h scheduleHost) Admits(ctx context.Context) error { return h.admits(ctx) }

// ShuttingDown implements schedules.Host.
func (h scheduleHost) ShuttingDown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing || !h.started.Load()
}

// Permits implements schedules.Host.
func (h scheduleHost) Permits(ctx context.Context, name string) error {
	u, err := h.units.Get(ctx, name)
	if err != nil {
		return err
	}
	return h.permits(u)
}

// Check implements schedules.Host.
func (h scheduleHost) Check(ctx context.Context, r schedules.Request) error {
	_, err := h.scheduled(ctx, r)
	return err
}

// Start implements schedules.Host.
func (h scheduleHost) Start(
	ctx context.Context, r schedules.Request, o store.Occurrence,
) (record api.Record, err error) {
	asked, err := h.scheduled(ctx, r)
	if err != nil {
		return record, err
	}
	asked.metadata, asked.occurrence = r.Metadata, &occurrence{r.Schedule, o}
	record, _, err = h.accept(ctx, asked)
	return record, err
}

// scheduled checks what a schedule asks for.
func (h scheduleHost) scheduled(ctx context.Context, r schedules.Request) (accepted, error) {
	u, err := h.units.Get(ctx, r.Unit)
	if err != nil {
		return accepted{}, err
	}
	return h.prepare(ctx, u, Submission{
		Unit: r.Unit, Input: r.Input, Files: r.Files, Timeout: r.Timeout,
		Metadata: r.Metadata, Unattended: r.Unattended,
	})
}

// occurrence is one of a schedule, which gets a run.
type occurrence struct {
	name string // the schedule's
	store.Occurrence
}

// startedAs returns the occurrence as it is stored with its run; nil is of none.
func (o *occurrence) startedAs(id string) *store.Occurrence {
	if o == nil {
		return nil
	}
	row := o.Occurrence
	row.Outcome, row.Run, row.Reason = string(api.OccurrenceStarted), id, ""
	return &row
}

// joinSchedule has the schedule of the run, if there is one, know that the run goes on.
func (j *job) joinSchedule() {
	if ref := j.Record.Schedule; ref != nil {
		j.loop.schedules.Join(ref.Name, j.ID)
	}
}

// leaveSchedule lets an occurrence begin that waits for the end of the run.
func (j *job) leaveSchedule() {
	if ref := j.Record.Schedule; ref != nil && j.Over() { // else the next process goes on with it
		j.loop.schedules.Leave(ref.Name, j.ID)
	}
}
