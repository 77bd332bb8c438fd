package schedules

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Scheduler implements feature.Feature: it makes, changes and shows schedules, and has their runs start at their
// times. It is safe for concurrent use. Where runs end with their process it does nothing.
type Scheduler struct {
	shared
	keeper       keeper
	payloadBytes int64
}

// shared is what Scheduler and keeper work with. What Init sets is nil before it.
type shared struct {
	clock   Clock
	table   *timetable
	figures *figures
	files   fileStore

	teams  access.Teams
	cancel func(ctx context.Context, id, reason string) (api.Record, error) // has a run end
	subs   feature.Submissions
	gate   feature.Gate
	store  *store.Store
	logger *slog.Logger
}

// New returns a Scheduler without schedules, which go by a clock; nil is the machine's. It starts nothing.
func New(clock Clock) *Scheduler {
	if clock == nil {
		clock = wallClock{}
	}
	s := &Scheduler{shared: shared{clock: clock, table: newTimetable(), figures: newFigures()}}
	s.keeper = keeper{&s.shared}
	return s
}

// Init implements feature.Initializer.
func (s *Scheduler) Init(p feature.Process) error {
	s.payloadBytes = p.PayloadBytes
	s.cancel, s.subs, s.gate, s.store, s.logger = p.Cancel, p.Submissions, p.Gate, p.Store, p.Logger
	s.teams = p.Teams
	if s.store == nil {
		return nil
	}
	s.files = fileStore{filepath.Join(p.Home.Dir, layout.Schedules), p.Logger}
	if err := os.MkdirAll(s.files.dir, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the directory of schedules can't be made")
	}
	return nil
}

// Restore implements feature.Restorer: it takes in the schedules that are stored.
func (s *Scheduler) Restore(ctx context.Context, _ []feature.Part, _ feature.Ancestry) error {
	return s.keeper.restore(ctx)
}

// Run implements feature.Runner: it looks at the schedules when they are due, until ctx ends.
func (s *Scheduler) Run(ctx context.Context) { s.keeper.run(ctx) }

// RemoveStrays implements feature.Sweeper: it removes the files that no schedule has.
func (s *Scheduler) RemoveStrays(ctx context.Context) error {
	s.table.changing.Lock()
	defer s.table.changing.Unlock()
	needed := map[string]bool{}
	err := s.keeper.each(ctx, func(stored storedSchedule) { needed[stored.row.Files] = true })
	if err != nil {
		return err
	}
	return s.files.sweep(needed)
}

// Collectors returns the metrics of all schedules.
func (s *Scheduler) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.figures.occurred, s.figures.late}
}

// Report implements feature.Reporter: when the next run of the unit is due.
func (s *Scheduler) Report(ctx context.Context, unit string, status *api.UnitStatus) {
	status.Next = s.table.nextOf(ctx, unit)
}

// Join implements feature.Feature.
func (s *Scheduler) Join(ctx context.Context, r *run.Run, caller feature.Part) feature.Part {
	if o, asked := ctx.Value(occurrenceKey{}).(occurrence); asked && caller == nil {
		r.Record.Schedule = &api.ScheduleRef{Name: o.schedule, Planned: o.Planned}
		return &part{scheduler: s, run: r, occurrence: o.Occurrence}
	}
	if r.Record.Schedule == nil {
		return feature.Indifferent{}
	}
	p := &part{scheduler: s, run: r}
	p.Open() // an earlier process stored it
	return p
}

// part is that of a run of a schedule.
type part struct {
	feature.Indifferent
	scheduler  *Scheduler
	run        *run.Run
	occurrence store.Occurrence // of a new run
}

// Open implements feature.Part: the schedule knows that the run goes on.
func (p *part) Open() { p.scheduler.table.join(p.run.Record.Schedule.Name, p.run.ID) }

// Prepare implements feature.Part: the run and its occurrence are stored in one transaction, or neither is.
func (p *part) Prepare(context.Context) ([]store.WithRun, error) {
	o := p.occurrence
	o.Outcome, o.Run, o.Reason = string(api.OccurrenceStarted), p.run.ID, ""
	return []store.WithRun{o}, nil
}

// Close implements feature.Part: an occurrence may begin that waits for the end of the run. With a run that isn't
// over the next process goes on, or it was refused.
func (p *part) Close() {
	p.scheduler.table.leave(p.run.Record.Schedule.Name, p.run.ID, p.run.Over())
}

// occurrence is one of a schedule, which is to have a run.
type occurrence struct {
	schedule string // its name
	store.Occurrence
}

type occurrenceKey struct{}

// Clock is what schedules go by. It may be set, forwards and back, at any time.
type Clock interface {
	Now() time.Time
	// After returns a channel that gets a value after a duration, or earlier.
	After(d time.Duration) <-chan time.Time
}

// wallClock is the machine's.
type wallClock struct{}

// Now implements Clock. The time has no monotonic part: what counts is what the clock shows.
func (wallClock) Now() time.Time { return time.Now().Round(0).UTC() }

// After implements Clock.
func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
